"""On Apple GPUs, llama.cpp's flash attention has the head width.

## What

``d_head`` is one of 32, 40, 48, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576.

## Why

ggml's Metal kernels are written for these, with keys and values of one type.

## Instead

64 or 128.

## Source

ggml-org/ggml src/ggml-metal/ggml-metal-device.m at d99724f2
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, next_in, one_of
from rules._devices import is_apple

WIDTHS = (32, 40, 48, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_apple(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"llama.cpp on Metal has no flash attention for heads of {width}; use "
        f"{next_in(width, WIDTHS) or 576}, or best 64 or 128"
    )


APPLE = example_device(vendor="Apple", kind="laptop", architecture="apple-gpu")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=APPLE),),
    fails=lambda: (example(d_model=2560, n_heads=16, n_kv_heads=8, d_head=160, device=APPLE),),
)
