"""An encoder-decoder's cross cache stays below its own cache.

## What

The source is no longer than the context: each decoder layer keeps both, the source's keys and
values once and for all, its own tokens as they come.

## Why

The cross cache is written in full before the first token and does not shrink with short answers.
With a long source it is what limits the batch, and sharing K/V in cross-attention saves it by
the same factor.

## Instead

Fewer KV heads (they are shared in cross-attention too), a shorter source, or a pooled encoder
output.

## Source

Arithmetic of the cache; Shazeer 2019 (arXiv 1911.02150), who measured the two caches apart
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_bytes_per_token, fixed_bytes_per_sequence
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import size


def applies(case: Case) -> bool:
    return any(g.scope.kind == "cross" for g in case.shape.groups)


def _cross(case: Case) -> Count:
    return fixed_bytes_per_sequence(case)["cross_attention"]


def _own(case: Case) -> Count:
    return cache_bytes_per_token(case) * case.workload.context


def holds(case: Case) -> Truth:
    return _cross(case) <= _own(case)


def says(case: Case) -> str:
    return (
        f"each sequence keeps {size(_cross(case))} for its source before the first token and "
        f"{size(_own(case))} for {case.workload.context:,} tokens of its own; fewer KV heads or a "
        "shorter source cut the first"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(arch="encoder-decoder", source_len=4096, context=8192),),
    fails=lambda: (example(arch="encoder-decoder", source_len=32768, context=2048),),
)
