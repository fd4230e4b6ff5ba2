"""A paged cache has pages of a multiple of 16 tokens.

## What

``page_size % 16 == 0`` where the cache is paged.

## Why

vLLM's FlashAttention and Triton backends take multiples of 16, FlashInfer 16, 32 and 64, and 16
is the default. A page holds one sequence, so the waste is under one page for each.

## Instead

16; larger pages where a kernel asks for them.

## Source

vllm-project/vllm docs/design/attention_backends.md at 00139433 and vllm/config/cache.py at
002f10e0
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes


def applies(case: Case) -> Truth:
    return decodes(case) and (case.workload.page_size > 1)


def holds(case: Case) -> Truth:
    return case.workload.page_size % 16 == 0


def says(case: Case) -> str:
    page = case.workload.page_size
    return f"pages of {page} tokens are no multiple of 16; use {max(round(page / 16), 1) * 16}"


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(page_size=16),),
    fails=lambda: (example(page_size=24),),
)
