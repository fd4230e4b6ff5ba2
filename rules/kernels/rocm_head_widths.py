"""On AMD GPUs, vLLM's kernels have the head width.

## What

``d_head`` is one of 32, 64, 80, 96, 128, 160, 192, 224, 256; the fastest backend (AITER) takes
64, 128 and 256.

## Why

These are the widths of vLLM's ROCm attention. Others run in Triton, which takes any width.

## Instead

64, 128 or 256.

## Source

vllm-project/vllm docs/design/attention_backends.md at 00139433
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import closest, grouped, is_grouped, one_of
from rules._devices import is_amd, name

FAST = (64, 128, 256)
WIDTHS = (32, 64, 80, 96, 128, 160, 192, 224, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_amd(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, FAST)


def says(case: Case) -> str:
    width = grouped(case).d_head
    where_ = "only vLLM's plain ROCm backend takes" if width in WIDTHS else "only Triton takes"
    return f"{where_} heads of {width} on {name(case)}; use {closest(width, FAST)}"


AMD = example_device(vendor="AMD", architecture="cdna3")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=AMD),),
    fails=lambda: (example(d_model=2560, n_heads=32, d_head=80, device=AMD),),
)
