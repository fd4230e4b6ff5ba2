"""On Hopper, heads are wide enough for prefill: 128 or more.

## What

``d_head >= 128`` on Hopper for contexts of 8,192 tokens and more.

## Why

Each score costs one exponential on a slow unit, whatever the width; wide heads have fewer scores
for the same arithmetic. FlashAttention-3 reached 0.49, 0.62, 0.69 and 0.73 of peak at 64, 128,
192 and 256, close to ``1 / (1.15 + 57 / d_head)``. Training's attention follows the same law.

## Instead

Half as many heads of twice the width; the projections do not change.

## Source

Timed kernels (H100) of ai-dynamo/aiconfigurator at 095f58a5 and a fit over them
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Real, Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_hopper, name


def applies(case: Case) -> Truth:
    return is_grouped(case) and is_hopper(case) and (case.workload.context >= 8192)


def holds(case: Case) -> Truth:
    return grouped(case).d_head >= 128


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"heads of {a.d_head} reach about {_share(a.d_head):.2f} of peak in long prefills on "
        f"{name(case)}, 128 reach {_share(128):.2f}; use {max(a.n_heads * a.d_head // 128, 1)} "
        "heads of 128"
    )


def _share(width: Count) -> Real:
    return 1.0 / (1.15 + 57.0 / width)


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=HOPPER),),
    fails=lambda: (example(n_heads=64, d_head=64, device=HOPPER),),
)
