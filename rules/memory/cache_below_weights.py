"""The cache of the whole batch stays below the weights.

## What

Cache bytes for the batch and context are at most the bytes of the weights.

## Why

Every decoding step reads both. Once the cache is the larger half, its size decides memory and
speed, and the head geometry is worth more than another percent of parameters.

## Instead

Fewer KV heads, an fp8 cache, a window on most layers, or MLA.

## Source

Arithmetic of the cache (Shazeer 2019, arXiv 1911.02150; Ainslie et al. 2023, arXiv 2305.13245)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_bytes, params_total
from configurator.core.dtypes import dtype
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import decodes, size, smaller_cache


def _weights(case: Case) -> Count:
    return dtype(case.workload.weight_dtype).bytes_for(params_total(case.shape))


def holds(case: Case) -> Truth:
    return cache_bytes(case) <= _weights(case)


def says(case: Case) -> str:
    cache, weights, work = cache_bytes(case), _weights(case), case.workload
    return (
        f"{work.batch} x {work.context:,} tokens keep {size(cache)} of cache beside "
        f"{size(weights)} of weights, {cache / weights:.1f} times as much; to shrink it, use "
        f"{smaller_cache(case)}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=decodes,
    holds=holds,
    says=says,
    passes=lambda: (example(context=32768),),
    fails=lambda: (example(context=131072, batch=8),),
)
