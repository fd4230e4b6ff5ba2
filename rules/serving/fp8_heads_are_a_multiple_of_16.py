"""With an fp8 cache on Hopper, head width is a multiple of 16.

## What

``d_head % 16 == 0``.

## Why

FlashAttention-3 loads 16 bytes at a time, so its fp8 kernels want 16 values where 16-bit ones
want 8.

## Instead

The next multiple of 16.

## Source

Dao-AILab/flash-attention hopper/flash_api.cpp at 0251105a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_hopper


def applies(case: Case) -> bool:
    return is_grouped(case) and is_hopper(case) and case.workload.kv.k.name == "fp8"


def holds(case: Case) -> Truth:
    return grouped(case).d_head % 16 == 0


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"d_head {width} is no multiple of 16, which FlashAttention-3 wants in fp8; use "
        f"{-(-width // 16) * 16}, or a bf16 cache"
    )


HOPPER = example_device(architecture="sm_90", flops_per_s={"bf16": 989e12, "fp8": 1979e12})

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_dtype="fp8", device=HOPPER),),
    fails=lambda: (
        example(d_model=2304, n_heads=32, n_kv_heads=8, d_head=72, kv_dtype="fp8", device=HOPPER),
    ),
)
