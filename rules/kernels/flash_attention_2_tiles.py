"""Head width is a tile of FlashAttention-2.

## What

On Ampere, Ada and card Blackwell: ``d_head`` is 32, 64, 96, 128, 192 or 256.

## Why

FlashAttention-2 is compiled for these six; a width between two runs as the larger one, so its
arithmetic is paid for and thrown away. The cache is not padded.

## Instead

A compiled width, or the padding known and accepted.

## Source

Dao-AILab/flash-attention csrc/flash_attn/src/static_switch.h at 0251105a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, listed, next_in, one_of
from rules._devices import runs_flash_attention_2

TILES = (32, 64, 96, 128, 192, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and runs_flash_attention_2(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, TILES)


def says(case: Case) -> str:
    width = grouped(case).d_head
    runs_as = next_in(width, TILES)
    if runs_as is None:
        return f"d_head {width} is beyond the largest tile, 256; use narrower heads"
    return (
        f"d_head {width} runs as {runs_as} in FlashAttention-2: {runs_as / width - 1:.0%} more "
        f"arithmetic than needed; use {listed(TILES[1:4:2])}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=example_device()),),
    fails=lambda: (example(d_model=2560, n_heads=32, d_head=80, device=example_device()),),
)
