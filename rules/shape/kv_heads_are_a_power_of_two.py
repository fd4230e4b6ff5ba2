"""Shared KV heads are a power of two.

## What

``n_kv_heads`` is 1, 2, 4, 8 or 16 wherever query heads share them.

## Why

Ranks come in powers of two, so other counts copy heads on some of them, and query groups of 6
and 7 have met missing kernels. Published models with 5, 6 or 10 KV heads exist (Phi-4 has 10)
and run; nothing was gained by the odd count.

## Instead

The next power of two below that divides the query heads.

## Source

vllm-project/vllm vllm/config/model.py; flashinfer-ai/flashinfer include/flashinfer/utils.cuh at
v0.6.18; own reading of the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, listed, power_of_two


def applies(case: Case) -> Truth:
    return is_grouped(case) and grouped(case).n_kv_heads < grouped(case).n_heads


def holds(case: Case) -> Truth:
    return power_of_two(grouped(case).n_kv_heads)


def says(case: Case) -> str:
    a = grouped(case)
    fits = [n for n in (1, 2, 4, 8, 16, 32) if a.n_heads % n == 0 and n < a.n_heads]
    close = min(fits, key=lambda n: (abs(n - a.n_kv_heads), n), default=1)
    return (
        f"{a.n_kv_heads} KV heads split over "
        f"{listed(tuple(t for t in (1, 2, 4, 8) if a.n_kv_heads % t == 0))} ranks without copies; "
        f"take {close} of {a.n_heads}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=4),),
    fails=lambda: (example(d_model=5120, n_heads=40, n_kv_heads=10),),
)
