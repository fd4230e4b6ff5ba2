"""Decoupled query heads of a dense model are 0.8 to 2 times as wide as the model.

## What

``0.8 <= n_heads * d_head / d_model <= 2`` where the two were allowed to differ.

## Why

Of 77 dense shapes from 2024, 70 had them equal. Since 2025 they scatter: 12 equal, 11 wider by
up to 2, 9 narrower. Known steps are 1.6 (Qwen3 4B and 32B) and 0.8 (Mistral Nemo). Far narrower
heads cost: cutting heads and K/V together lost 0.033 to 0.043 nats where sharing K/V alone lost
0.010 at the same cache.

## Instead

Keep the query heads and share K/V; widen rather than narrow.

## Source

Own count over the model catalog; Shazeer 2019 (arXiv 1911.02150) table 3
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth
from rules._ask import grouped, is_grouped, is_mixture


def applies(case: Case) -> bool:
    return is_grouped(case) and case.workload.allow_decoupled and not is_mixture(case)


def _ratio(case: Case) -> Real:
    return grouped(case).n_heads * grouped(case).d_head / grouped(case).d_model


def holds(case: Case) -> Truth:
    return (_ratio(case) >= 0.8) & (_ratio(case) <= 2)


def says(case: Case) -> str:
    a = grouped(case)
    near = max(round(int(a.d_model) / int(a.d_head) / 8) * 8, 1)
    return (
        f"{a.n_heads} heads of {a.d_head} are {_ratio(case):.2f} times d_model {a.d_model}; take "
        f"{near} heads, and save cache by sharing K/V instead"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=2560, n_heads=32, allow_decoupled=True),),
    fails=lambda: (example(d_model=4096, n_heads=16, allow_decoupled=True),),
)
