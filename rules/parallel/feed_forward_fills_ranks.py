"""Each rank's share of the feed-forward is a multiple of 64.

## What

``d_ff % (64 * tensor_parallel) == 0`` for a dense model; experts are spread whole.

## Why

A rank multiplies with its slice of the matrix, and the slice's width is what tensor cores see.
Slices that are no multiple of 64 in 16-bit run below full rate; one that does not divide at all
is refused or padded.

## Instead

The nearest multiple of 64 times the ranks.

## Source

Anthony et al. 2024 (arXiv 2401.14489) as summarised in stas00/ml-engineering
training/performance/README.md at 744d01e
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import is_mixture


def applies(case: Case) -> bool:
    feed_forward = case.shape.feed_forward
    return feed_forward is not None and not is_mixture(case)


def _width(case: Case) -> Count:
    feed_forward = case.shape.feed_forward
    return feed_forward.d_ff if feed_forward is not None else 0


def holds(case: Case) -> Truth:
    return _width(case) % (64 * maximum(case.workload.tensor_parallel, 1)) == 0


def says(case: Case) -> str:
    step = 64 * case.workload.tensor_parallel
    near = max(round(int(_width(case)) / step), 1) * step
    return (
        f"d_ff {_width(case)} over {case.workload.tensor_parallel} ranks gives slices that are no "
        f"multiple of 64; use {near}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_ff=14336, tensor_parallel=8),),
    fails=lambda: (example(d_ff=11008, tensor_parallel=8), example(d_ff=10922)),
)
