"""Sparse MLA leaves 64 or 128 query heads on a rank.

## What

With an indexer (sparse attention over the latent): ``n_heads / tensor_parallel`` is 64 or 128.

## Why

FlashMLA's sparse decode and prefill are compiled for exactly these counts. A model of 128 heads
under four ranks has 32 on each: it must pad them to 64 and compute twice the work.

## Instead

Tensor parallelism 1 or 2 for 128 heads, with data-parallel attention over the rest.

## Source

deepseek-ai/FlashMLA csrc/api/sparse_decode.h and sparse_fwd.h at 9241ae3
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth, many
from rules._ask import is_latent, latent, listed, one_of, rank_heads, with_attention


def applies(case: Case) -> Truth:
    return is_latent(case) and latent(case).index_head_dim > 0


def holds(case: Case) -> Truth:
    return one_of(rank_heads(case), (64, 128))


def says(case: Case) -> str:
    heads, ranks = latent(case).n_heads, case.workload.tensor_parallel
    fits = [t for t in (1, 2, 4, 8) if heads % t == 0 and heads // t in (64, 128)]
    remedy = f"tensor parallelism {listed(tuple(fits))}" if fits else "64 or 128 heads"
    return (
        f"{many(heads, 'head')} over {many(ranks, 'rank')} leave {rank_heads(case)} on each; "
        f"FlashMLA's sparse kernels take 64 or 128: use {remedy}, or pad"
    )


def _sparse(tensor_parallel: int) -> Case:
    dense = example(n_heads=128, kv_lora_rank=512, tensor_parallel=tensor_parallel)
    return with_attention(dense, index_head_dim=128, index_n_heads=64)


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("parallel/heads-divide-by-ranks",),
    holds=holds,
    says=says,
    passes=lambda: (_sparse(tensor_parallel=2),),
    fails=lambda: (_sparse(tensor_parallel=4),),
)
