"""MLA has a power of two of query heads, at most 128.

## What

``n_heads`` is a power of two up to 128.

## Why

Published MLA takes 16 heads at a width of 2,048, 64 at 6,144 to 7,168 (Kimi K2, LongCat) or 128
there (DeepSeek). Doubling 64 to 128 lowered Kimi K2's loss by 0.5 to 1.2 % and cost 83 % more
arithmetic at 128k tokens, with the same cache. Beyond 128 no law was measured.

## Instead

The power of two at or above ``d_model / 128``, at most 128.

## Source

Kimi K2 2025 (arXiv 2507.20534) section 2.3; own reading of the model catalog (MLA shapes)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent, power_of_two, power_of_two_below


def holds(case: Case) -> Truth:
    return power_of_two(latent(case).n_heads) & (latent(case).n_heads <= 128)


def says(case: Case) -> str:
    a = latent(case)
    wanted = min(2 * power_of_two_below((a.d_model - 1) / 128), 128)
    return (
        f"{a.n_heads} heads on d_model {a.d_model}: published MLA has 16 to 128 in powers of two; "
        f"use {wanted}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=is_latent,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, n_heads=32),),
    fails=lambda: (example(kv_lora_rank=512, d_model=5120, n_heads=40),),
)
