"""Head width is a power of two.

## What

``d_head`` is 32, 64, 128 or 256 for grouped attention.

## Why

The width is a dimension of two products per head. The co-design rules ask for it to be divisible
by as large a power of two as possible; well-chosen shapes trained up to 39 % faster at similar
size. 80 is divisible by 16 alone and 96 by 32.

## Instead

64 or 128, with the head count changed to fit.

## Source

Anthony et al. 2024 (arXiv 2401.14489)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, power_of_two, power_of_two_below


def holds(case: Case) -> Truth:
    return power_of_two(grouped(case).d_head)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"d_head {width} is divisible by {width & -width} at most; use {power_of_two_below(width)} "
        f"or {2 * power_of_two_below(width)}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=is_grouped,
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128),),
    fails=lambda: (example(d_model=2560, n_heads=32, d_head=80),),
)
