"""Width over depth lies in the range published at this size.

## What

``d_model / n_layers`` between 19 and 96 below a billion parameters, 47 and 150 from there to 4B,
and 43 and 220 above: where nine in ten published decoders lie, with a margin.

## Why

Loss hardly depends on it: a 40-fold change of the ratio cost under 3 % (Kaplan). Deep and narrow
models decode slowly, one small layer after another; wide and shallow ones were tried less.
Staying in the range keeps other people's learning rates and initializations applicable.

## Instead

Fewer, wider layers, or more, narrower ones, at the same parameter count.

## Source

Kaplan et al. 2020 (arXiv 2001.08361) figure 5; own percentiles over the model catalog (decoders
published since 2022)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import where
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth
from rules._ask import count, parameters

RANGES = ((1e9, 19, 96), (4e9, 47, 150), (float("inf"), 43, 220))


def _bounds(case: Case) -> tuple[Real, Real]:
    low: Real = RANGES[-1][1]
    high: Real = RANGES[-1][2]
    for below, least, most in reversed(RANGES[:-1]):
        small = parameters(case) < 0.99 * below  # a budget is met within 1 %
        low, high = where(small, least, low), where(small, most, high)
    return low, high


def holds(case: Case) -> Truth:
    ratio = case.shape.d_model / case.shape.n_layers
    low, high = _bounds(case)
    return (ratio >= low) & (ratio <= high)


def says(case: Case) -> str:
    low, high = _bounds(case)
    ratio = case.shape.d_model / case.shape.n_layers
    way = "fewer, wider" if ratio < low else "more, narrower"
    return (
        f"d_model {case.shape.d_model} over {case.shape.n_layers} layers is {ratio:.0f}; decoders "
        f"of {count(parameters(case))} parameters were published with {low:.0f} to {high:.0f}; "
        f"take {way} layers"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.WEAK,
    holds=holds,
    says=says,
    passes=lambda: (
        example(d_model=4096, n_layers=32),
        example(
            d_model=768,
            n_heads=12,
            n_kv_heads=12,
            d_head=64,
            n_layers=12,
            d_ff=2048,
            vocab_size=50304,
            tied=True,
        ),
    ),
    fails=lambda: (
        example(d_model=4096, n_layers=128),
        example(d_model=8192, n_heads=64, n_layers=8, d_ff=28672),
    ),
)
