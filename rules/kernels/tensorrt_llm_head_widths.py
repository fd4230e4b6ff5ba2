"""TensorRT-LLM's decode has the head width.

## What

On NVIDIA GPUs: ``d_head`` is one of 32, 48, 64, 80, 96, 104, 112, 128, 144, 160, 192, 224, 256.

## Why

These are the widths its decode kernel is compiled for; the faster grouped one covers fewer.

## Instead

The next width in the list, best 64 or 128.

## Source

NVIDIA/TensorRT-LLM cpp/tensorrt_llm/kernels/decoderMaskedMultiheadAttention.cu
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, grouped, is_grouped, next_in, one_of
from rules._devices import is_nvidia

WIDTHS = (32, 48, 64, 80, 96, 104, 112, 128, 144, 160, 192, 224, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case) and decodes(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"TensorRT-LLM decodes no heads of {width}; the next width it knows is "
        f"{next_in(width, WIDTHS) or 256}, and every engine takes 64 or 128"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=example_device()),),
    fails=lambda: (example(d_model=3200, n_heads=32, d_head=100, device=example_device()),),
)
