"""Query heads split evenly over the tensor-parallel ranks.

## What

``n_heads % tensor_parallel == 0``, for every kind of attention.

## Why

Each rank computes whole heads. vLLM stops at start-up otherwise, Megatron-core refuses the
configuration, and of 35 published shapes above 40B parameters 34 divide by eight.

## Instead

A tensor parallelism that divides the heads, or a head count that is a multiple of 8.

## Source

vllm-project/vllm vllm/config/model.py; NVIDIA/Megatron-LM
megatron/core/transformer/transformer_config.py at d98e8a64; own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import several_ranks


def holds(case: Case) -> Truth:
    ranks = case.workload.tensor_parallel
    return (ranks >= 1) & (case.attention.n_heads % maximum(ranks, 1) == 0)


def says(case: Case) -> str:
    heads, ranks = case.attention.n_heads, case.workload.tensor_parallel
    valid = [n for n in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32) if n <= heads and heads % n == 0]
    rounded = -(-heads // max(ranks, 1)) * max(ranks, 1)
    return (
        f"{heads} query heads do not split over {ranks} ranks; use tensor parallelism "
        f"{', '.join(map(str, valid))}, or {rounded} heads"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=several_ranks,
    holds=holds,
    says=says,
    passes=lambda: (
        example(n_heads=32, tensor_parallel=8),
        example(kv_lora_rank=512, tensor_parallel=4),
    ),
    fails=lambda: (example(d_model=3584, n_heads=28, n_kv_heads=4, tensor_parallel=8),),
)
