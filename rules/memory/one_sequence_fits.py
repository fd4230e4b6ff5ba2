"""One sequence of the full context fits beside the weights.

## What

Weights, reserve and the cache of a single sequence at the whole context, on each device.

## Why

Below that the context asked for cannot be served at all: engines refuse to start, or cut the
context. The cache grows with layers, KV heads, head width and element size, and those are what a
designer can still change.

## Instead

Fewer KV heads or MLA, an fp8 cache, a window on most layers, a shorter context, more devices.

## Source

Arithmetic of the cache (Shazeer 2019, arXiv 1911.02150; Ainslie et al. 2023, arXiv 2305.13245);
vllm-project/vllm vllm/config/cache.py at 002f10e0
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_budget_per_device
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import one_sequence, size, smaller_cache
from rules._devices import name, named


def holds(case: Case) -> Truth:
    return one_sequence(case) <= cache_budget_per_device(case)


def says(case: Case) -> str:
    each, left = one_sequence(case), cache_budget_per_device(case)
    return (
        f"one sequence of {case.workload.context:,} tokens needs {size(each)} of cache on each "
        f"{name(case)}, {each / max(left, 1):.1f} times the {size(left)} left beside the weights; "
        f"use {smaller_cache(case)}"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=named,
    requires=("memory/weights-fit",),
    holds=holds,
    says=says,
    passes=lambda: (example(context=32768, device=example_device()),),
    fails=lambda: (example(context=1048576, device=example_device()),),
)
