"""On NVIDIA cards of one's own, llama.cpp's flash attention has the head width.

## What

On consumer, laptop and edge NVIDIA devices: ``d_head`` is 64, 80, 96, 112, 128 or 256.

## Why

ggml's CUDA kernels take these (and 40 and 72 without tensor cores). The single-token kernel
exists for 64, 128 and 256 alone. Without flash attention a quantised V cache is refused too.

## Instead

64 or 128.

## Source

ggml-org/ggml src/ggml-cuda/fattn.cu and fattn-common.cuh at d99724f2
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import closest, grouped, is_grouped, one_of
from rules._devices import is_card_of_a_person, is_nvidia, name

WIDTHS = (64, 80, 96, 112, 128, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case) and is_card_of_a_person(case)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    why = "misses the tensor cores" if width in (40, 72) else "has no flash-attention kernel"
    return (
        f"d_head {width} {why} in llama.cpp on {name(case)}; use {closest(width, (64, 128, 256))}"
    )


CARD = example_device(kind="consumer-gpu", architecture="sm_89")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=CARD),),
    fails=lambda: (example(d_model=2560, n_heads=16, n_kv_heads=8, d_head=160, device=CARD),),
)
