"""Absorbed MLA stays memory-bound with two query tokens.

## What

``2 * (n_heads / ranks) * 2`` FLOPs a cache byte are at most the device's FLOPs a byte.

## Why

All query heads read one latent, so MLA does about ``2 h`` FLOPs for each byte where GQA does its
group size. 128 heads on a Hopper GPU are at the ridge with one token already; with two, as in
speculative decoding, compute decides and checking drafts is no longer free.

## Instead

Fewer heads on a rank, GQA, or a latent split in groups.

## Source

deepseek-ai/FlashMLA docs/20250422-new-kernel-deep-dive.md at 9241ae3;
Dao-AILab/grouped-latent-attention README.md
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, rank_heads
from rules._devices import device, name, named


def applies(case: Case) -> bool:
    return is_latent(case) and named(case) and device(case).rate("bf16")[0] > 0


def _ridge(case: Case) -> float:
    return device(case).rate("bf16")[0] / device(case).bandwidth_bytes_per_s


def holds(case: Case) -> Truth:
    return 4 * rank_heads(case) <= _ridge(case)


def says(case: Case) -> str:
    return (
        f"{rank_heads(case)} heads on a rank do {4 * rank_heads(case)} FLOPs a cache byte with two "
        f"query tokens, {name(case)} balances at {_ridge(case):.0f}; use GQA for speculative "
        f"decoding, or at most {max(int(_ridge(case) // 4), 1)} heads a rank"
    )


HOPPER = example_device(
    architecture="sm_90", flops_per_s={"bf16": 989e12}, bandwidth_bytes_per_s=3.35e12
)

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("parallel/heads-divide-by-ranks",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_heads=64, kv_lora_rank=512, device=HOPPER),),
    fails=lambda: (example(n_heads=128, kv_lora_rank=512, device=HOPPER),),
)
