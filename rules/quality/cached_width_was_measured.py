"""The cache per token and layer is at least a tenth of the model's width.

## What

``x = n_kv_heads * (d_head + value width) / d_model >= 0.1`` for grouped attention; plain MHA has
2.

## Why

Below it the loss estimate rests on one study whose head width fell with the cache: 0.026 to
0.067 nats at x from 0.063 to 0.031. Without its three points the data allow a nearly flat curve,
so the price is uncertain, not known to be small.

## Instead

Twice the KV heads, or MLA where the kernels exist.

## Source

Brandon et al. 2024 (arXiv 2405.12981) tables 1 and 3; own fit over 21 published comparisons
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.quality import cached_width
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped


def holds(case: Case) -> Truth:
    return cached_width(case.attention) >= 0.1


def says(case: Case) -> str:
    a = grouped(case)
    x = cached_width(case.attention)
    return (
        f"{a.n_kv_heads} KV head{'s' * (a.n_kv_heads != 1)} of {a.d_head} on d_model {a.d_model} "
        f"cache {x:.3f} of the width: below 0.1 the expected loss is an extrapolation from one "
        f"study; use {2 * a.n_kv_heads} KV heads or more"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.WEAK,
    applies=is_grouped,
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=2),),
    fails=lambda: (example(n_kv_heads=1),),
)
