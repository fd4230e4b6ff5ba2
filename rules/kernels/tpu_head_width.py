"""On a TPU, head width is a multiple of 128.

## What

``d_head % 128 == 0`` where vLLM serves on a TPU.

## Why

Its TPU backend pads every head to 128, so heads of 64 cost as much cache traffic and arithmetic
as heads of 128.

## Instead

Half as many heads of 128.

## Source

The constant TPU_HEAD_SIZE_ALIGNMENT in vLLM's TPU backend (tpu_inference), found by string
search
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_tpu, name


def applies(case: Case) -> bool:
    return is_grouped(case) and is_tpu(case)


def holds(case: Case) -> Truth:
    return grouped(case).d_head % 128 == 0


def says(case: Case) -> str:
    a = grouped(case)
    padded = -(-a.d_head // 128) * 128
    return (
        f"heads of {a.d_head} are padded to {padded} on {name(case)}, {padded / a.d_head:.1f} "
        f"times the cache; use {max(a.n_heads * a.d_head // padded, 1)} heads of {padded}"
    )


TPU = example_device(vendor="Google", kind="tpu", architecture="tpu-v5e")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=TPU),),
    fails=lambda: (example(n_heads=64, d_head=64, device=TPU),),
)
