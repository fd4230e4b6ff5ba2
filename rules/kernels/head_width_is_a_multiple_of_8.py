"""On NVIDIA GPUs, head width is a multiple of 8.

## What

``d_head % 8 == 0`` for grouped attention on an NVIDIA GPU.

## Why

FlashAttention 2 and 3 refuse other widths in 16-bit (3 wants 16 in FP8), PyTorch's
memory-efficient and cuDNN paths do too, and vLLM's FlashAttention backend lists multiples of 8.
What remains is the math path, which writes the whole score matrix to memory.

## Instead

The next multiple of 8; better 64 or 128.

## Source

Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp and hopper/flash_api.cpp at 0251105a;
pytorch/pytorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_nvidia, name


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case)


def holds(case: Case) -> Truth:
    return (grouped(case).d_head % 8 == 0) & (grouped(case).v_width % 8 == 0)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"d_head {width} is no multiple of 8: neither FlashAttention nor PyTorch's fused paths "
        f"take it on {name(case)}; use {-(-width // 8) * 8}, or 64 or 128"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=2560, n_heads=32, d_head=80, device=example_device()),),
    fails=lambda: (example(d_model=3200, n_heads=32, d_head=100, device=example_device()),),
)
