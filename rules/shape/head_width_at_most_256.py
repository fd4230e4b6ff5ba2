"""A head is at most 256 wide.

## What

``d_head <= 256`` for grouped attention. MLA's latent is wider and has kernels of its own.

## Why

FlashAttention documents 256 as its limit in every generation, PyTorch's flash path on CUDA stops
there too, and in measured prefill a width of 512 fell back to a slower kernel. Wider heads also
leave fewer of them to attend to different things.

## Instead

Twice as many heads of half the width.

## Source

Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp and hopper/flash_api.cpp at 0251105a;
pytorch/pytorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped


def holds(case: Case) -> Truth:
    return grouped(case).d_head <= 256


def says(case: Case) -> str:
    a = grouped(case)
    parts_ = -(-a.d_head // 256)
    return (
        f"d_head {a.d_head} is beyond 256, where FlashAttention ends; take {a.n_heads * parts_} "
        f"heads of {a.d_head // parts_}"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=is_grouped,
    holds=holds,
    says=says,
    passes=lambda: (example(n_heads=16, n_kv_heads=4, d_head=256),),
    fails=lambda: (example(n_heads=8, n_kv_heads=2, d_head=512),),
)
