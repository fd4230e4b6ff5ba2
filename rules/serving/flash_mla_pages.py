"""A paged latent has pages of 64 tokens.

## What

``page_size`` is 64 for MLA on Hopper, 32, 64 or 128 on data-centre Blackwell.

## Why

FlashMLA's dense decode wants exactly 64; on Blackwell FlashInfer takes 32 or 64 and CUTLASS 128.
Engines force the page to it, so a smaller one in a plan understates what is reserved.

## Instead

64.

## Source

deepseek-ai/FlashMLA csrc/api/dense_decode.h at 9241ae3; vllm-project/vllm
docs/design/attention_backends.md at 00139433
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, one_of
from rules._devices import is_datacenter_blackwell, is_hopper, name


def applies(case: Case) -> Truth:
    suits = is_latent(case) and (is_hopper(case) or is_datacenter_blackwell(case))
    return suits and (case.workload.page_size > 1)


def holds(case: Case) -> Truth:
    sizes = (64,) if is_hopper(case) else (32, 64, 128)
    return one_of(case.workload.page_size, sizes)


def says(case: Case) -> str:
    return (
        f"pages of {case.workload.page_size} tokens: MLA's kernels on {name(case)} take "
        f"{'64' if is_hopper(case) else '32, 64 or 128'}; use 64"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, page_size=64, device=HOPPER),),
    fails=lambda: (example(kv_lora_rank=512, page_size=16, device=HOPPER),),
)
