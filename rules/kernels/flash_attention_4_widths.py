"""Head width has a FlashAttention-4 kernel on data-centre Blackwell.

## What

On B200 and its like: ``d_head`` is a multiple of 8 up to 128, or exactly 256.

## Why

Above 128 the kernels there cover 256 with 256, 192 with values of 128, and the latent shapes of
MLA. 160, 192 with equal values and 224 have no path, although they run on Hopper.

## Instead

128 or 256.

## Source

Dao-AILab/flash-attention flash_attn/cute/interface.py at 0251105a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_datacenter_blackwell, name


def applies(case: Case) -> bool:
    return is_grouped(case) and is_datacenter_blackwell(case)


def holds(case: Case) -> Truth:
    key, value = grouped(case).d_head, grouped(case).v_width
    small = (key <= 128) & (value <= 128) & (key % 8 == 0)
    return small | ((key == 256) & (value == 256)) | ((key == 192) & (value == 128))


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"d_head {width} has no FlashAttention-4 kernel on {name(case)}, which takes up to 128, or "
        f"256; use {128 if width < 192 else 256}"
    )


BLACKWELL = example_device(architecture="sm_100")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (
        example(d_head=128, device=BLACKWELL),
        example(n_heads=16, n_kv_heads=8, d_head=256, device=BLACKWELL),
    ),
    fails=lambda: (example(d_model=2560, n_heads=16, n_kv_heads=8, d_head=160, device=BLACKWELL),),
)
