"""A decoder shares its KV heads.

## What

``n_kv_heads < n_heads`` in a decoder.

## Why

MHA was 22 of 92 new shapes in 2024 and none of 55 since. At a quarter of the cache the net loss
is nil in every measured point. One result speaks against and belongs here: in DeepSeek's 7B
comparison MMLU was 45.2 with MHA and 41.2 with eight KV heads, which the loss model would not
predict.

## Instead

GQA; MHA where the cache is small beside the weights and quality is everything.

## Source

DeepSeek-V2 2024 (arXiv 2405.04434) table 8; Zadouri et al. 2025 (arXiv 2505.21487); own count
over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, grouped, is_grouped


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case) and case.shape.arch == "decoder"


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads < grouped(case).n_heads


def says(case: Case) -> str:
    a = grouped(case)
    fewer = max((n for n in (1, 2, 4, 8) if n < a.n_heads and a.n_heads % n == 0), default=1)
    return (
        f"MHA caches {a.cache_elements()} values a token and layer, {fewer} KV heads "
        f"{2 * fewer * a.d_head}; no new decoder shape since 2025 keeps MHA; take GQA unless "
        "quality outweighs memory (DeepSeek saw MMLU 45.2 against 41.2)"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=8),),
    fails=lambda: (example(n_kv_heads=32),),
)
