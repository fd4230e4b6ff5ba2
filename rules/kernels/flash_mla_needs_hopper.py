"""A latent is served on Hopper or later, where its kernels exist.

## What

MLA on an NVIDIA GPU before Hopper, or on a card's Blackwell.

## Why

FlashMLA's dense decode is for Hopper, its sparse one for Hopper and data-centre Blackwell. What
runs elsewhere does not split the context and pads the heads of a rank to 64: on an A100 8,192
tokens took 945 us at batch 1 and 1,015 us at batch 16, the same for 1 to 64 heads and for an
8-bit cache.

## Instead

GQA on these devices; or MLA for its memory alone, at a large batch.

## Source

deepseek-ai/FlashMLA README.md at 9241ae3; timed kernels (A100, L40S) of ai-dynamo/aiconfigurator
at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent
from rules._devices import is_datacenter_blackwell, is_hopper, is_nvidia, name


def applies(case: Case) -> bool:
    return is_latent(case) and is_nvidia(case)


def holds(case: Case) -> Truth:
    return is_hopper(case) or is_datacenter_blackwell(case)


def says(case: Case) -> str:
    return (
        f"{name(case)} has no FlashMLA: an A100 took 945 us a layer at 8,192 tokens for any head "
        f"count up to 64; use GQA, or keep MLA for its {latent(case).latent_width} cached values"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, device=example_device(architecture="sm_90")),),
    fails=lambda: (example(kv_lora_rank=512, device=example_device(architecture="sm_80")),),
)
