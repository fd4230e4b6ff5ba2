"""MHA with more than 16 heads stays within 32,768 tokens.

## What

In a decoder, one KV head per query head and more than 16 heads, at contexts above 32,768 tokens,
always carries the cost of its cache and an offer of GQA or MLA. The answer is still given: this
is a warning.

## Why

A 7B with 32 heads of 128 keeps 512 KiB a token: 16 GiB at 32k, four times what eight KV heads
keep. No new shape in the catalog has used MHA since 2025, and one of 30 with contexts above 32k
did before. This guardrail cannot be switched off.

## Instead

GQA with 8 KV heads, or MLA from a billion parameters up.

## Source

Ainslie et al. 2023 (arXiv 2305.13245); DeepSeek-V2 2024 (arXiv 2405.04434); own count over the
model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_bytes, cache_bytes_per_token
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, grouped, is_grouped, size, with_attention


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case)


def holds(case: Case) -> Truth:
    heads, kv = grouped(case).n_heads, grouped(case).n_kv_heads
    return (kv != heads) | (heads <= 16) | (case.workload.context <= 32768)


def says(case: Case) -> str:
    a, work = grouped(case), case.workload
    heads = a.n_heads
    fewer = max(n for n in range(1, 9) if heads % n == 0)
    here, there = cache_bytes(case), cache_bytes(with_attention(case, n_kv_heads=fewer))
    return (
        f"MHA with {heads} heads keeps {size(cache_bytes_per_token(case))} a token: {size(here)} "
        f"for {work.batch} x {work.context:,} tokens; take GQA with {fewer} KV heads, which keeps "
        f"{size(there)}, {here / there:.1f} times less, or, from 1B parameters up, MLA: "
        f"{9 * a.d_head // 2} values a token and layer against {2 * fewer * a.d_head} of that GQA"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=8, context=131072), example(n_kv_heads=32, context=32768)),
    fails=lambda: (example(n_kv_heads=32, context=131072),),
)
