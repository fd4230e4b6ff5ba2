"""A latent has the one shape that fast MLA kernels are written for.

## What

On Hopper and Blackwell: a latent of 512 with a rotary key of 64, or one of the few other shapes
that FlashInfer compiles (256 with 64, or 512 without a rotary part).

## Why

FlashMLA takes cached keys of 576 or 512 with values of 512 and nothing else. Six of seven
published MLA shapes are 512 and 64. Another rank runs in Triton, or rebuilt into full heads.

## Instead

``kv_lora_rank`` 512 and ``qk_rope_head_dim`` 64, with 128 for the other head widths.

## Source

deepseek-ai/FlashMLA csrc/api/dense_decode.h at 9241ae3; flashinfer-ai/flashinfer
flashinfer/mla/_core.py at v0.6.18
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent
from rules._devices import is_datacenter_blackwell, is_hopper, name


def applies(case: Case) -> bool:
    return is_latent(case) and (is_hopper(case) or is_datacenter_blackwell(case))


def holds(case: Case) -> Truth:
    rank, rope = latent(case).kv_lora_rank, latent(case).qk_rope_head_dim
    wide = (rank == 512) & ((rope == 64) | (rope == 0))
    return wide | ((rank == 256) & (rope == 64))


def says(case: Case) -> str:
    a = latent(case)
    return (
        f"a latent of {a.kv_lora_rank} with a rotary key of {a.qk_rope_head_dim} has no fast "
        f"kernel on {name(case)}; use 512 with 64, or expect Triton's speed"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, device=HOPPER),),
    fails=lambda: (example(kv_lora_rank=384, device=HOPPER),),
)
