"""At most 16 query heads share a KV head.

## What

``n_heads / n_kv_heads <= 16``.

## Why

A soft limit. 19 of 110 published GQA shapes exceed 8, so a group of 8 is no rule of the field;
beyond 16 there are few precedents, kernels of 16-row tiles need a second one (25 to 35 % slower
on XQA), and the cached width is usually small as well.

## Instead

Twice the KV heads.

## Source

Own count over the model catalog (GQA shapes published since 2024); timed kernels of
ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import group, grouped, is_grouped


def holds(case: Case) -> Truth:
    return group(case) <= 16


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"{group(case)} query heads share each of {a.n_kv_heads} KV heads, few models go beyond "
        f"16; use {-(-a.n_heads // 16)} KV heads"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.WEAK,
    applies=is_grouped,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=2),),
    fails=lambda: (example(d_model=8192, n_heads=64, n_kv_heads=2),),
)
