"""MLA has at most 64 query heads where contexts reach 131,072 tokens.

## What

``n_heads <= 64`` for MLA at 131,072 tokens and more.

## Why

Absorbed attention multiplies every head with the whole latent. Kimi K2 counted 83 % more FLOPs
for 128 heads than for 64 at that length, for 0.5 to 1.2 % of loss, and took 64. DeepSeek took
128. The cache is the same.

## Instead

64 heads; 128 where loss outweighs long-context compute.

## Source

Kimi K2 2025 (arXiv 2507.20534) section 2.3
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent


def applies(case: Case) -> Truth:
    return is_latent(case) and (case.workload.context >= 131072)


def holds(case: Case) -> Truth:
    return latent(case).n_heads <= 64


def says(case: Case) -> str:
    heads = latent(case).n_heads
    return (
        f"{heads} MLA heads at {case.workload.context:,} tokens: 128 instead of 64 cost 83 % more "
        "FLOPs there for 0.5 to 1.2 % of loss; use 64, or 128 knowingly"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=7168, n_heads=64, kv_lora_rank=512, context=131072),),
    fails=lambda: (example(d_model=7168, n_heads=128, kv_lora_rank=512, context=131072),),
)
