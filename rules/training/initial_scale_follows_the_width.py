"""The plain initial scale of 0.02 suits the width.

## What

0.02 is within about a factor of two of ``sqrt(2 / (5 * d_model))``, the small-init value: widths
from 250 to 4,096. Beyond, compute it.

## Why

GPT-2's 0.02 was chosen near a width of 1,000 and became a default. Products sum over the width,
so the scale that keeps activations steady falls with its root. Published practice agrees: 1B and
3B runs of one study used 0.0128, which is ``1 / sqrt(3 * 2048)``. Whatever the base, output
projections of a residual stack are divided by ``sqrt(2 * n_layers)``, so that the sum over
layers keeps its size.

## Instead

The computed values: base for Q, K and V, scaled for O.

## Source

karpathy/nanoGPT model.py at 3adf61e; EleutherAI cookbook on NeoX initialization; Brandon et al.
2024 (arXiv 2405.12981)
"""

from __future__ import annotations

from math import sqrt

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth


def _small(case: Case) -> float:
    return sqrt(2.0 / (5.0 * int(case.shape.d_model)))


def holds(case: Case) -> Truth:
    width = case.shape.d_model
    return (width >= 250) & (width <= 4096)


def says(case: Case) -> str:
    base = _small(case)
    output = base / sqrt(2.0 * int(case.shape.n_layers))
    return (
        f"at d_model {case.shape.d_model} a standard deviation of 0.02 is {0.02 / base:.1f} times "
        f"small-init; use {base:.4f} for Q, K and V and {output:.5f} for the output projections of "
        f"{case.shape.n_layers} layers"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=2048, n_heads=16, n_kv_heads=4),),
    fails=lambda: (example(d_model=8192, n_heads=64, n_layers=80),),
)
