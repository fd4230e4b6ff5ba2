"""On a machine of one's own, a full context does not halve the speed.

## What

On CPUs, Apple GPUs, phones, boards and cards: one sequence's cache at the whole context is at
most the weights read for a token.

## Why

One person decodes one sequence, and each token reads the weights and the cache once. These
machines are short of bandwidth and reach less of it: 0.69 to 0.85 was seen on an M1 Max GPU,
0.24 from its CPU cores, half on an Intel Arc. A cache as large as the weights doubles the time
of each token.

## Instead

Fewer KV heads, a q8_0 cache (0.53 of 16-bit), or a shorter context.

## Source

ggml-org/llama.cpp pull requests 2188 and 1642 (M1 Max); ai-dynamo/aiconfigurator
aic-core/src/aiconfigurator_core/systems at 095f58a5 (Arc B60); ggml-org/ggml src/ggml-common.h
at d99724f2
"""

from __future__ import annotations

from dataclasses import replace

from configurator.core.case import Case
from configurator.core.cost import cache_bytes, touched_params
from configurator.core.dtypes import dtype
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Real, Truth
from rules._ask import decodes, size, smaller_cache
from rules._devices import is_apple, is_card_of_a_person, is_cpu, name


def applies(case: Case) -> bool:
    return decodes(case) and (is_cpu(case) or is_apple(case) or is_card_of_a_person(case))


def _weights(case: Case) -> Real:
    store = dtype(case.workload.weight_dtype)
    return touched_params(case.shape, 1.0) * store.bytes_per_element


def _cache(case: Case) -> Count:
    one = replace(case, workload=replace(case.workload, batch=1))
    return cache_bytes(one)


def holds(case: Case) -> Truth:
    return _cache(case) <= _weights(case)


def says(case: Case) -> str:
    return (
        f"at {case.workload.context:,} tokens each token reads {size(_cache(case))} of cache and "
        f"{size(_weights(case))} of weights on {name(case)}: less than half the speed of a short "
        f"context; use {smaller_cache(case)}"
    )


LAPTOP = example_device(vendor="Apple", kind="laptop", architecture="apple-gpu")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(context=8192, device=LAPTOP),),
    fails=lambda: (example(context=131072, n_kv_heads=32, device=LAPTOP),),
)
