"""MLA leaves whole tiles of 64 query heads on a rank.

## What

On NVIDIA GPUs ``n_heads / tensor_parallel`` is a multiple of 64.

## Why

Absorbed decoding stacks the heads of a rank as rows of a 64-row tile: 16 heads take as long as
64. Timed kernels on Hopper and before it show the padding, so tensor parallelism does not make
the attention of MLA faster below 64 heads a rank.

## Instead

Less tensor parallelism and more replicas; or 64 or 128 heads.

## Source

deepseek-ai/FlashMLA README.md at 9241ae3; timed kernels of ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth, many
from rules._ask import is_latent, rank_heads
from rules._devices import is_nvidia


def applies(case: Case) -> bool:
    return is_latent(case) and is_nvidia(case)


def holds(case: Case) -> Truth:
    return rank_heads(case) % 64 == 0


def says(case: Case) -> str:
    heads, ranks = case.attention.n_heads, case.workload.tensor_parallel
    padded = -(-rank_heads(case) // 64) * 64
    remedy = "fewer ranks with replicas" if ranks > 1 else "64 heads where compute allows"
    return (
        f"{many(heads, 'head')} over {many(ranks, 'rank')} leave {rank_heads(case)} in a tile of "
        f"{padded}: decoding takes as long as with {padded}; use {remedy}"
    )


HOPPER = example_device(architecture="sm_90", count=8)

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("parallel/heads-divide-by-ranks",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_heads=64, kv_lora_rank=512, device=HOPPER),),
    fails=lambda: (example(n_heads=128, kv_lora_rank=512, tensor_parallel=8, device=HOPPER),),
)
