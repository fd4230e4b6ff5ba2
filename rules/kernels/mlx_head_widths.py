"""On Apple GPUs, MLX's fused attention has the head width.

## What

``d_head`` is 64, 96, 128, 192 or 256: the widths that both prefill and decode take.

## Why

MLX's decode kernel is written for these; prefill adds 72 and 80. At 192 and 256 the library
itself prefers the unfused prefill, which is faster there.

## Instead

64 or 128.

## Source

ml-explore/mlx mlx/backend/metal/scaled_dot_product_attention.cpp at 846d1762
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, next_in, one_of
from rules._devices import is_apple

WIDTHS = (64, 96, 128, 192, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_apple(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"MLX has no fused decode for heads of {width}; use {next_in(width, WIDTHS) or 256}, or "
        "best 64 or 128"
    )


APPLE = example_device(vendor="Apple", kind="laptop", architecture="apple-gpu")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=64, n_heads=64, device=APPLE),),
    fails=lambda: (example(d_model=2560, n_heads=32, d_head=80, device=APPLE),),
)
