"""With an fp8 cache on Ada or card Blackwell, query groups stay at 16.

## What

On these devices with an 8-bit cache and heads of 128 or wider: ``n_heads / n_kv_heads <= 16``.

## Why

vLLM serves that cache with FlashInfer there. Above 16 query heads its tile jumps from 16 to 64
rows: timed kernels on an L40S took about 1.9 times as long at groups of 20 to 40 as the same
bytes at 16 or fewer.

## Instead

At least one KV head for every 16 query heads, or a 16-bit cache.

## Source

Own residuals over timed kernels (L40S) of ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, grouped, is_grouped, kv_heads_for_groups_of
from rules._devices import compute_capability, name


def applies(case: Case) -> bool:
    cards = compute_capability(case) in (89, 120, 121)
    return is_grouped(case) and decodes(case) and cards and case.workload.kv.k.name == "fp8"


def holds(case: Case) -> Truth:
    return (group(case) <= 16) | (grouped(case).d_head < 128)


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"{group(case)} query heads share a KV head with an fp8 cache on {name(case)}: groups "
        f"above 16 took 1.9 times as long there; use {kv_heads_for_groups_of(a.n_heads, 16)} KV "
        "heads or more"
    )


ADA = example_device(architecture="sm_89")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=8, kv_dtype="fp8", device=ADA),),
    fails=lambda: (example(n_kv_heads=1, kv_dtype="fp8", device=ADA),),
)
