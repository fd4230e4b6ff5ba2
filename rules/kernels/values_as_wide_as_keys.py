"""Keys and values are equally wide, or a kernel knows the pair.

## What

For grouped attention ``v_head_dim == d_head``; on Hopper and data-centre Blackwell 192 with 128
is served too.

## Why

PyTorch's flash paths on CUDA and CPU, its Metal kernels and FlashAttention-2 take one width for
both. FlashAttention-3 takes keys of 129 to 192 with values of 97 to 128, FlashAttention-4 and
cuDNN the pair 192 and 128.

## Instead

One width, or MLA, whose kernels are written for two.

## Source

pytorch/pytorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a and
sdp_utils_cpp.cpp at 02315a42; Dao-AILab/flash-attention hopper/flash_api.cpp at 0251105a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_datacenter_blackwell, is_hopper, name, named


def applies(case: Case) -> bool:
    return is_grouped(case) and named(case)


def holds(case: Case) -> Truth:
    key, value = grouped(case).d_head, grouped(case).v_width
    known = is_hopper(case) or is_datacenter_blackwell(case)
    return (key == value) | ((key == 192) & (value == 128) & known)


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"keys of {a.d_head} with values of {a.v_width} have no fused kernel on {name(case)}; use "
        f"{max(a.d_head, a.v_width)} for both, or 192 with 128 on Hopper and later"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (
        example(device=example_device()),
        example(
            n_heads=64,
            d_head=192,
            v_head_dim=128,
            allow_decoupled=True,
            device=example_device(architecture="sm_90"),
        ),
    ),
    fails=lambda: (example(d_head=128, v_head_dim=64, device=example_device()),),
)
