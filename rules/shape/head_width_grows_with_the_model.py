"""Heads are 128 wide from a width of 2,048 up.

## What

``d_head >= 128`` where ``d_model >= 2048``.

## Why

Of 71 shapes without a latent and wider than 4,000, 65 use 128, and at 2,048 most still do (nine
plain shapes of 128, two of 256, four of 64). One reason is speed: the best long prefills on an
H100 reach 0.62 of peak at 128 and 0.49 at 64. The loss argues for neither: 128 won by 0.028 nats
at 1B and lost by 0.004 at 3B in one study with tuned learning rates.

## Instead

Half as many heads, twice as wide.

## Source

Own count over the model catalog (decoders published since 2024); Brandon et al. 2024 (arXiv
2405.12981); timed kernels of ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped


def applies(case: Case) -> Truth:
    return is_grouped(case) and case.shape.d_model >= 2048


def holds(case: Case) -> Truth:
    return grouped(case).d_head >= 128


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"{a.n_heads} heads of {a.d_head} at d_model {a.d_model}: teams mostly chose 128 here, and "
        f"prefill at 64 reaches 0.49 of peak against 0.62; take {a.n_heads * a.d_head // 128} "
        "heads of 128"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=2048, n_heads=16, n_kv_heads=4, d_head=128),),
    fails=lambda: (example(d_model=4096, n_heads=64, n_kv_heads=8, d_head=64),),
)
