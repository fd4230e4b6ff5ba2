"""No more than 32 query heads share a KV head in TensorRT-LLM.

## What

On NVIDIA GPUs: ``n_heads / n_kv_heads <= 32`` where decoding happens.

## Why

TensorRT-LLM's fast grouped decode ends at 32. Beyond, a generic kernel reads the cache once per
query head: 64 query heads on one KV head took 693 us where two KV heads took 76 us on an H100.
vLLM with FlashAttention-3 has no such step.

## Instead

One KV head more. It costs little cache and removes a factor of nine on that engine.

## Source

NVIDIA/TensorRT-LLM docs/source/features/attention.md at 30d2c50c; timed kernels of
ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, grouped, is_grouped, kv_heads_for_groups_of
from rules._devices import is_nvidia


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case) and decodes(case)


def holds(case: Case) -> Truth:
    return group(case) <= 32


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"{group(case)} query heads per KV head leave TensorRT-LLM's fast decode (at most 32): on "
        "an H100 a group of 64 took 693 us, one of 32 took 76; use "
        f"{kv_heads_for_groups_of(a.n_heads, 32)} KV heads or more"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=1, device=example_device()),),
    fails=lambda: (example(d_model=8192, n_heads=64, n_kv_heads=1, device=example_device()),),
)
