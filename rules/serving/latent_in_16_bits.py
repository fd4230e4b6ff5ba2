"""A latent is cached in 16 bits, unless the engine reads fp8 natively.

## What

MLA with an fp8 cache on an NVIDIA GPU is worth a measurement first.

## Why

Halving a latent often buys memory and no time. SGLang converts the cache at every step and ran
six times slower than bf16 on an H100; before Hopper the time was the same within 3 %. Only
TensorRT-LLM's Hopper kernel gained. FlashMLA's fp8 layout takes 656 bytes a token and layer, not
576.

## Instead

bf16 for the latent; it is small already. fp8 where memory alone decides.

## Source

Timed kernels of ai-dynamo/aiconfigurator at 095f58a5; deepseek-ai/FlashMLA README.md at 9241ae3
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent
from rules._devices import is_nvidia


def applies(case: Case) -> bool:
    return is_latent(case) and is_nvidia(case)


def holds(case: Case) -> Truth:
    return case.workload.kv.k.name != "fp8"


def says(case: Case) -> str:
    width = latent(case).latent_width
    return (
        f"an fp8 latent of {width} values saves memory but was up to 6 times slower to read in one "
        f"engine and no faster before Hopper; use bf16 ({2 * width} bytes) unless memory decides"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, device=HOPPER),),
    fails=lambda: (example(kv_lora_rank=512, kv_dtype="fp8", device=HOPPER),),
)
