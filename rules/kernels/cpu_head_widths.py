"""On CPUs, vLLM's kernel has the head width.

## What

``d_head`` is one of 32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512.

## Why

vLLM's CPU attention lists these. PyTorch's own flash path on CPU takes any width as long as keys
and values are equally wide; llama.cpp wants multiples of its quantisation block.

## Instead

64 or 128.

## Source

vllm-project/vllm docs/design/attention_backends.md at 00139433; pytorch/pytorch
aten/src/ATen/native/transformers/sdp_utils_cpp.cpp at 02315a42
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, next_in, one_of
from rules._devices import is_cpu

WIDTHS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_cpu(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"vLLM's CPU attention has no heads of {width}; use {next_in(width, WIDTHS) or 512}, or "
        "best 64 or 128"
    )


CPU = example_device(vendor="Intel", kind="cpu-server", architecture="x86-cpu")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=CPU),),
    fails=lambda: (example(d_model=3200, n_heads=32, d_head=100, device=CPU),),
)
