"""Quantisation blocks of the cache divide the head width.

## What

The values of one block (32 in llama.cpp's q8_0 to q4_0, 16 in NVFP4) divide ``d_head`` for keys
and the value width for values.

## Why

A block never spans two heads, so a width that is no multiple leaves an engine nothing to store:
llama.cpp refuses such a cache.

## Instead

A head width of 64 or 128, or a cache type without blocks.

## Source

ggml-org/ggml src/ggml-common.h at d99724f2; llama.cpp's check on cache types, found by string
search over public notes
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import head_width, is_latent, latent, value_width


def applies(case: Case) -> bool:
    return case.workload.kv.k.block > 2 or case.workload.kv.v.block > 2


def holds(case: Case) -> Truth:
    kv = case.workload.kv
    return (_stored_key(case) % kv.k.block == 0) & (value_width(case) % kv.v.block == 0)


def _stored_key(case: Case) -> Count:
    return latent(case).latent_width if is_latent(case) else head_width(case)


def says(case: Case) -> str:
    kv = case.workload.kv
    block = max(kv.k.block, kv.v.block)
    return (
        f"a {kv.name} cache stores blocks of {block}, which do not divide a key of "
        f"{_stored_key(case)} and a value of {value_width(case)}; use a width of 64 or 128, or "
        "another cache type"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=applies,
    masks=True,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_dtype="q8_0"), example(kv_dtype="q4_0", kv_lora_rank=512)),
    fails=lambda: (example(d_model=2560, n_heads=32, d_head=80, kv_dtype="q8_0"),),
)
