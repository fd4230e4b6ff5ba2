"""MLA's down-projections divide over the ranks that train them.

## What

``q_lora_rank`` and ``kv_lora_rank + qk_rope_head_dim`` are multiples of ``tensor_parallel``.

## Why

Megatron-core splits these projections when activations are sharded along the sequence, and
refuses ranks that do not divide.

## Instead

Ranks and rotary widths that are multiples of 64.

## Source

NVIDIA/Megatron-LM megatron/core/transformer/multi_latent_attention.py at d98e8a64
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent, several_ranks


def applies(case: Case) -> Truth:
    return is_latent(case) and several_ranks(case)


def holds(case: Case) -> Truth:
    ranks, a = maximum(case.workload.tensor_parallel, 1), latent(case)
    return (a.q_lora_rank % ranks == 0) & (a.latent_width % ranks == 0)


def says(case: Case) -> str:
    a, ranks = latent(case), case.workload.tensor_parallel
    return (
        f"q_lora_rank {a.q_lora_rank} and a latent of {a.latent_width} do not both divide over "
        f"{ranks} ranks in Megatron's sharded training; use multiples of 64"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, q_lora_rank=1536, tensor_parallel=8),),
    fails=lambda: (example(kv_lora_rank=512, q_lora_rank=1500, tensor_parallel=8),),
)
