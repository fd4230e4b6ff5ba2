"""A mixture too large for one node uses MLA.

## What

A mixture whose bf16 weights exceed 0.9 of eight of the target's devices, beyond 8,192 tokens of
context, keeps a latent.

## Why

Such a model is spread over nodes by experts, with data-parallel attention, so nothing copies the
latent; the large batch that fills the experts makes the cache the larger part of the traffic.
Plain mixtures above 520B: MLA in three of three labs; from 260B to 520B in none of seven shapes.

## Instead

MLA with a latent of 512 and a rotary key of 64.

## Source

Own count over the model catalog (mixtures published since 2024); Zadouri et al. 2025 (arXiv
2505.21487); DeepSeek-V2 2024 (arXiv 2405.04434)
"""

from __future__ import annotations

from typing import Any

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, decodes, is_latent, is_mixture, parameters, size
from rules._devices import device, name, named


def applies(case: Case) -> Truth:
    suits = named(case) and is_mixture(case) and decodes(case)
    return suits and (2.0 * parameters(case) > _node(case)) & (case.workload.context > 8192)


def _node(case: Case) -> float:
    return 0.9 * 8 * device(case).memory_bytes


def holds(case: Case) -> Truth:
    return is_latent(case)


def says(case: Case) -> str:
    return (
        f"{count(parameters(case))} parameters take {size(2 * parameters(case))} in bf16, more "
        f"than 0.9 of 8 x {name(case)}: experts will spread over nodes and leave attention whole; "
        f"use MLA, 576 cached values a layer against {case.attention.cache_elements()}"
    )


HUGE: dict[str, Any] = {
    "d_model": 7168,
    "n_heads": 56,
    "n_layers": 61,
    "d_ff": 2048,
    "n_experts": 256,
    "experts_per_token": 8,
    "context": 131072,
    "device": example_device(count=32, nodes=4),
}

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(**HUGE, kv_lora_rank=512),),
    fails=lambda: (example(**HUGE),),
)
