"""An fp8 cache meets a kernel that reads it.

## What

A device asked to hold an fp8 cache has an fp8 rate.

## Why

vLLM's FlashAttention reads fp8 with version 3 alone, that is on Hopper; elsewhere FlashInfer or
Triton do it. The bytes halve everywhere; the arithmetic gets no cheaper, since many kernels
still multiply in 16-bit, and a device without the rate has no other way.

## Instead

A 16-bit cache with fewer KV heads, or llama.cpp's q8_0 on a card.

## Source

vllm-project/vllm docs/design/attention_backends.md at 00139433; deepseek-ai/FlashMLA README.md
at 9241ae3; fp8 rates of the device catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_bytes_per_token
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import size
from rules._devices import device, name, named


def applies(case: Case) -> bool:
    return named(case) and case.workload.kv.k.name == "fp8"


def holds(case: Case) -> Truth:
    return bool(device(case).flops_per_s.get("fp8"))


def says(case: Case) -> str:
    _, used = device(case).rate("fp8")
    halved = size(cache_bytes_per_token(case))
    return (
        f"{name(case)} has no fp8 rate: the cache is {halved} a token but arithmetic runs in "
        f"{used or 'a wider type'}, and FlashAttention-2 does not read it; use FlashInfer or "
        "Triton, or bf16 with fewer KV heads"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (
        example(
            kv_dtype="fp8",
            device=example_device(flops_per_s={"bf16": 989e12, "fp8": 1979e12}),
        ),
    ),
    fails=lambda: (example(kv_dtype="fp8", device=example_device()),),
)
