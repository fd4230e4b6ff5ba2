"""KV heads divide the ranks, or the ranks divide them.

## What

With KV heads and ``t`` ranks: ``n_kv_heads % t == 0``, or ``t % n_kv_heads == 0`` and heads are
copied. A latent is copied whole and is not judged here.

## Why

A rank holds ``max(1, n_kv_heads // t)`` whole heads. Where neither divides the other, some ranks
would serve query heads whose KV head lies elsewhere; vLLM's model layers and Megatron-core
refuse that.

## Instead

A power of two for both counts; 8 KV heads fit 1, 2, 4, 8 and 16 ranks.

## Source

vllm-project/vllm vllm/config/model.py and the attention layers of its models; NVIDIA/Megatron-LM
megatron/core/transformer/transformer_config.py at d98e8a64
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, several_ranks


def applies(case: Case) -> Truth:
    return is_grouped(case) and several_ranks(case)


def holds(case: Case) -> Truth:
    kv = maximum(grouped(case).n_kv_heads, 1)
    ranks = maximum(case.workload.tensor_parallel, 1)
    return (kv % ranks == 0) | (ranks % kv == 0)


def says(case: Case) -> str:
    a, ranks = grouped(case), case.workload.tensor_parallel
    kv = a.n_kv_heads
    valid = [
        t for t in range(1, 17) if a.n_heads % t == 0 and (kv % t == 0 or (kv and t % kv == 0))
    ]
    return (
        f"{kv} KV heads and {ranks} ranks: neither divides the other; use tensor parallelism "
        f"{', '.join(map(str, valid))}, or {ranks} KV heads"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("parallel/heads-divide-by-ranks", "shape/kv-heads-divide-heads"),
    holds=holds,
    says=says,
    passes=lambda: (
        example(n_kv_heads=8, tensor_parallel=4),
        example(n_kv_heads=4, tensor_parallel=8),
    ),
    fails=lambda: (example(d_model=3072, n_heads=24, n_kv_heads=6, tensor_parallel=8),),
)
