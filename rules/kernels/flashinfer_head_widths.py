"""FlashInfer has the head width.

## What

On data-centre NVIDIA GPUs: ``d_head`` is 64, 128 or 256.

## Why

These are built ahead of time, and they are what vLLM's FlashInfer backend lists. On data-centre
Blackwell that backend is tried first, so another width moves serving to Triton.

## Instead

64, 128 or 256; or check that another backend carries the load.

## Source

flashinfer-ai/flashinfer flashinfer/aot.py at v0.6.18; vllm-project/vllm
docs/design/attention_backends.md at 00139433
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import closest, grouped, is_grouped, one_of
from rules._devices import device, is_nvidia

WIDTHS = (64, 128, 256)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case) and device(case).kind == "datacenter-gpu"


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, WIDTHS)


def says(case: Case) -> str:
    width = grouped(case).d_head
    return (
        f"FlashInfer is built for heads of 64, 128 and 256, not {width}; use "
        f"{closest(width, WIDTHS)}, or serve with another backend"
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
