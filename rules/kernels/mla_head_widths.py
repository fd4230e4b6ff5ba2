"""MLA's heads are 128 wide beside the rotary part.

## What

``qk_nope_head_dim`` and ``v_head_dim`` are 128, or a pair that FlashInfer compiles: 64 and 128
with a latent of 256, 256 and 256 with a latent of 512 and no rotary part.

## Why

Prefill rebuilds full heads. The kernels take 192 (128 and 64) with values of 128, and several on
Blackwell take DeepSeek's dimensions alone.

## Instead

128, 64 and 128.

## Source

flashinfer-ai/flashinfer flashinfer/mla/_core.py at v0.6.18; deepseek-ai/FlashMLA README.md at
9241ae3; vllm-project/vllm docs/design/attention_backends.md at 00139433
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
    a = latent(case)
    plain = (a.qk_nope_head_dim == 128) & (a.v_head_dim == 128)
    small = (a.qk_nope_head_dim == 64) & (a.v_head_dim == 128) & (a.kv_lora_rank == 256)
    return plain | small | ((a.qk_nope_head_dim == 256) & (a.v_head_dim == 256))


def says(case: Case) -> str:
    a = latent(case)
    return (
        f"heads of {a.qk_nope_head_dim} + {a.qk_rope_head_dim} with values of {a.v_head_dim} miss "
        "the prefill kernels of MLA; use 128 + 64 with 128"
    )


HOPPER = example_device(architecture="sm_90")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, device=HOPPER),),
    fails=lambda: (example(kv_lora_rank=512, qk_nope_head_dim=96, v_head_dim=96, device=HOPPER),),
)
