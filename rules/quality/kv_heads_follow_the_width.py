"""KV heads are the largest power of two with a cached width of 0.5 at most, capped at 8.

## What

The largest power of two with ``2 * n_kv_heads * d_head <= d_model / 2`` that divides the heads,
at most 8 and at least the tensor-parallel ranks.

## Why

At x = 0.5 the net loss against MHA at equal parameters is nil or negative in all eight measured
points; it is the last value without a measured cost. 8 is the ranks of a node, beyond which more
KV heads only cost cache. SmolLM3 saw 4, 8 and 16 of 32 match MHA, and 1 or 2 clearly worse.
Above a width of 4,096 the cap rules and x falls to 0.25 and less: there 8 is a count that all
labs accept, not a constant of quality.

## Instead

That count; fewer when the cache does not fit, more for no measured gain.

## Source

Zadouri et al. 2025 (arXiv 2505.21487); Hugging Face, The Smol Training Playbook (SmolLM3); own
count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum, minimum
from configurator.core.examples import example
from configurator.core.quality import cached_width
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import decodes, grouped, is_grouped, power_of_two_below


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case)


def _wanted(case: Case) -> Count:
    a = grouped(case)
    most = maximum(a.d_model / (2.0 * (a.d_head + a.v_width)), 2.0)
    free = power_of_two_below(minimum(most, 8.0))
    divides = a.n_heads & -a.n_heads
    return maximum(minimum(free, divides), minimum(case.workload.tensor_parallel, a.n_heads))


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads == _wanted(case)


def says(case: Case) -> str:
    a, wanted = grouped(case), int(_wanted(case))
    x = cached_width(case.attention)
    more = a.n_kv_heads > wanted
    way = "costs cache for no measured gain" if more else "saves cache at some risk"
    return (
        f"{a.n_kv_heads} KV heads of {a.d_head} cache {x:.2f} of d_model {a.d_model}; {wanted} is "
        f"the largest count without a measured cost here, {a.n_kv_heads} {way}; take {wanted} "
        "unless memory decides otherwise"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (
        example(n_kv_heads=8),
        example(d_model=2048, n_heads=16, n_kv_heads=4),
        example(d_model=3584, n_heads=28, n_kv_heads=4),
    ),
    fails=lambda: (example(n_kv_heads=32), example(n_kv_heads=2)),
)
