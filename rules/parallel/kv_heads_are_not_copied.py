"""There is a KV head for every rank.

## What

``n_kv_heads >= tensor_parallel``. With fewer, servers copy each KV head to several ranks.

## Why

A copied head takes memory and bandwidth on each rank that holds it, so past ``n_kv_heads`` ranks
the cache per rank stops shrinking. Llama 2 argues its eight KV heads this way: on eight GPUs
MQA's cache is no smaller than GQA-8's. Of 16 plain GQA shapes above 40B, 14 have eight.

## Instead

As many KV heads as ranks, or less tensor parallelism and data-parallel attention.

## Source

Touvron et al. 2023 (Llama 2, arXiv 2307.09288) appendix A.2.1; vllm-project/vllm
vllm/config/model.py; own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_bytes_per_token
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, grouped, is_grouped, several_ranks, size


def applies(case: Case) -> Truth:
    return is_grouped(case) and decodes(case) and several_ranks(case)


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads >= case.workload.tensor_parallel


def says(case: Case) -> str:
    kv, ranks = grouped(case).n_kv_heads, case.workload.tensor_parallel
    each = cache_bytes_per_token(case, tensor_parallel=ranks)
    return (
        f"{kv} KV heads on {ranks} ranks are copied {ranks // max(kv, 1)} times: each rank keeps "
        f"{size(each)} a token, as with {kv} ranks; use {ranks} KV heads at the same cost per rank"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("parallel/kv-heads-fit-ranks",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=8, tensor_parallel=8),),
    fails=lambda: (example(n_kv_heads=2, tensor_parallel=8),),
)
