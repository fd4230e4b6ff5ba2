"""On Hopper and data-centre Blackwell, PyTorch's cuDNN path takes the head width.

## What

There ``d_head`` is at most 128 and a multiple of 8.

## Why

PyTorch tries cuDNN first on these devices when cuDNN is newer than 9.15. The path stops at 128,
save for 192 with values of 128 and, with cuDNN above 9.22, 256. Wider heads go to the flash
path, which is right but is not what the library would choose.

## Instead

128; at 256, check which backend is chosen before timing it.

## Source

pytorch/pytorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_datacenter_blackwell, is_hopper, name


def applies(case: Case) -> bool:
    return is_grouped(case) and (is_hopper(case) or is_datacenter_blackwell(case))


def holds(case: Case) -> Truth:
    key, value = grouped(case).d_head, grouped(case).v_width
    return ((key <= 128) & (key % 8 == 0)) | ((key == 192) & (value == 128))


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"d_head {a.d_head} leaves PyTorch's cuDNN path (up to 128) on {name(case)} for "
        f"FlashAttention; take {-(-a.d_head // 128) * a.n_heads} heads of 128, or check the "
        "backend that is chosen"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("kernels/head-width-is-a-multiple-of-8",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=HOPPER),),
    fails=lambda: (example(n_heads=16, n_kv_heads=8, d_head=256, device=HOPPER),),
)
