"""A sparse mixture's query heads are twice as wide as the model.

## What

For a mixture with ``s >= 10`` and 20B parameters or more: ``n_heads * d_head >= 1.5 * d_model``.

## Why

At that sparsity attention is 2 to 3 % of the parameters, so doubling the query width adds about
2 %, and query heads are not cached. In 2024, 7 of 9 such shapes were as wide as the model; since
2025, 13 of 14 are wider, with a median of 2. The habit is young and its gain rests on few
ablations (added query heads help more than added KV heads).

## Instead

Twice the query heads with the same KV heads; this needs decoupled heads.

## Source

Own count over the model catalog (mixtures published since 2024); Chen et al. 2025 on
cost-optimal grouped-query attention (arXiv 2503.09579)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import density, grouped, is_grouped, is_mixture, parameters


def applies(case: Case) -> Truth:
    return (
        is_grouped(case) and is_mixture(case) and (density(case) >= 10) & (parameters(case) >= 20e9)
    )


def holds(case: Case) -> Truth:
    return 2 * grouped(case).n_heads * grouped(case).d_head >= 3 * grouped(case).d_model


def says(case: Case) -> str:
    a = grouped(case)
    added = 2 * a.d_model * a.d_model * case.shape.n_layers / parameters(case)
    return (
        f"{a.n_heads} heads of {a.d_head} on d_model {a.d_model} in a mixture of density "
        f"{density(case):.0f}: 13 of 14 such models since 2025 widened queries; use "
        f"{2 * a.d_model // a.d_head} heads, which add {added:.1%} of weights and no cache, with "
        "--allow-decoupled-heads"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.WEAK,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (
        example(
            d_model=2048,
            n_heads=32,
            n_kv_heads=4,
            n_layers=48,
            d_ff=768,
            n_experts=128,
            experts_per_token=8,
            allow_decoupled=True,
        ),
    ),
    fails=lambda: (
        example(
            d_model=2048,
            n_heads=16,
            n_kv_heads=4,
            n_layers=48,
            d_ff=768,
            n_experts=128,
            experts_per_token=8,
        ),
    ),
)
