"""FlashAttention-2's own paged cache has pages of 256 tokens.

## What

On Ampere, Ada and card Blackwell: ``page_size % 256 == 0`` if the library's own interface is
called; vLLM's build takes multiples of 16.

## Why

The stock library checks for multiples of 256 and raises otherwise. Who serves with vLLM does not
meet it; who calls flash_attn_with_kvcache does.

## Instead

256 with the stock library, 16 with vLLM.

## Source

Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp at 0251105a; vllm-project/vllm
docs/design/attention_backends.md at 00139433
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, is_grouped
from rules._devices import runs_flash_attention_2


def applies(case: Case) -> Truth:
    suits = is_grouped(case) and decodes(case) and runs_flash_attention_2(case)
    return suits and (case.workload.page_size > 1)


def holds(case: Case) -> Truth:
    return case.workload.page_size % 256 == 0


def says(case: Case) -> str:
    page = case.workload.page_size
    return (
        f"pages of {page} tokens suit vLLM's build; the stock FlashAttention-2 takes multiples of "
        f"256: use {-(-page // 256) * 256} when calling it directly"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("serving/page-is-a-multiple-of-16",),
    holds=holds,
    says=says,
    passes=lambda: (example(page_size=256, device=example_device()),),
    fails=lambda: (example(page_size=16, device=example_device()),),
)
