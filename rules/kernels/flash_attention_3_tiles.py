"""Head width is a tile of FlashAttention-3.

## What

On Hopper: ``d_head`` is 64, 96, 128, 192 or 256.

## Why

FlashAttention-3 rounds up to these: 72 runs as 96 and 160 as 192. 32 exists in FlashAttention-2
only and runs as 64 here.

## Instead

A compiled width. 80-wide heads cost a fifth more arithmetic on Hopper than they show.

## Source

Dao-AILab/flash-attention hopper/flash_api.cpp at 0251105a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, next_in, one_of
from rules._devices import is_hopper

TILES = (64, 96, 128, 192, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_hopper(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, TILES)


def says(case: Case) -> str:
    width = grouped(case).d_head
    runs_as = next_in(width, TILES)
    if runs_as is None:
        return f"d_head {width} is beyond the largest tile, 256; use narrower heads"
    return (
        f"d_head {width} runs as {runs_as} in FlashAttention-3: {runs_as / width - 1:.0%} more "
        "arithmetic than needed; use 64 or 128"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=HOPPER),),
    fails=lambda: (example(d_model=2560, n_heads=16, n_kv_heads=8, d_head=160, device=HOPPER),),
)
