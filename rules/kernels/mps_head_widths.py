"""On Apple GPUs, PyTorch's Metal attention has the head width.

## What

``d_head`` is 64, 96, 128 or 256: the widths that both prefill and decode take.

## Why

PyTorch's decode kernel (eight query tokens or fewer) has these; prefill adds 32, 72 and 80.
Elsewhere a graph fallback repeats K and V and builds the whole score matrix.

## Instead

64 or 128.

## Source

pytorch/pytorch aten/src/ATen/native/mps/operations/Attention.mm at 00a5f92f
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import closest, grouped, is_grouped, one_of
from rules._devices import is_apple

WIDTHS = (64, 96, 128, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_apple(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"heads of {width} fall to PyTorch's graph fallback on Metal, with the whole score matrix; "
        f"use {closest(width, WIDTHS)}"
    )


APPLE = example_device(vendor="Apple", kind="laptop", architecture="apple-gpu")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=APPLE),),
    fails=lambda: (
        example(
            d_model=2048, n_heads=32, n_kv_heads=8, d_head=192, allow_decoupled=True, device=APPLE
        ),
    ),
)
