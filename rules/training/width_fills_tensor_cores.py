"""The width is a multiple of 64, best of 128.

## What

``d_model % 64 == 0``.

## Why

Every product of the model has ``d_model`` as a dimension. Tensor cores run at full rate at
multiples of 128 bytes, 64 elements in 16-bit, on Ampere and later. All 261 decoders of the
catalog since 2022 keep to 64, and 253 to 128.

## Instead

The nearest multiple of 64.

## Source

Anthony et al. 2024 (arXiv 2401.14489) as summarised in stas00/ml-engineering
training/performance/README.md at 744d01e; own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth


def holds(case: Case) -> Truth:
    return case.shape.d_model % 64 == 0


def says(case: Case) -> str:
    width = case.shape.d_model
    return (
        f"d_model {width} is no multiple of 64, so every matrix product runs below full rate; use "
        f"{max(round(width / 64), 1) * 64}"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=4096),),
    fails=lambda: (example(d_model=1000, n_heads=10, n_kv_heads=10, d_head=100),),
)
