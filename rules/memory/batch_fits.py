"""The batch asked for fits at the full context.

## What

Weights, reserve and the cache of every sequence in flight, on the busiest device.

## Why

Engines do not fail here: they queue or evict sequences, so throughput falls and nobody is told.
Better to know the largest batch before the heads are fixed.

## Instead

The largest batch that fits, fewer KV heads, a narrower cache, or more devices.

## Source

Arithmetic of the cache (Shazeer 2019, arXiv 1911.02150); vllm-project/vllm vllm/config/cache.py
at 002f10e0
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import fits, max_batch
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import one_sequence, size, smaller_cache
from rules._devices import device, name, named


def holds(case: Case) -> Truth:
    return fits(case)


def says(case: Case) -> str:
    return (
        f"{case.workload.batch} sequences of {case.workload.context:,} tokens do not fit: one "
        f"takes {size(one_sequence(case))} of cache on a rank, and {device(case).count} x "
        f"{name(case)} holds {max_batch(case)} in all; use a smaller batch, {smaller_cache(case)}"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=named,
    requires=("memory/one-sequence-fits",),
    holds=holds,
    says=says,
    passes=lambda: (example(context=32768, batch=8, device=example_device()),),
    fails=lambda: (example(context=32768, batch=64, device=example_device()),),
)
