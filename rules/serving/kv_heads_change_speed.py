"""Decoding is long enough for KV heads to change its speed.

## What

The part of one layer's attention that does not depend on bytes (launches, prologues, merges) is
at most half of its predicted time.

## Why

At batch 1 and 8k tokens an H100 took 17, 17, 18 and 20 us for 1, 2, 4 and 8 KV heads: the floor
of about 12 us rules. At batch 16 it took 38, 58, 102 and 211. In the first regime KV heads
change memory, not speed, and nobody should give up quality for time.

## Instead

Choose KV heads for memory and quality here; they begin to matter for time at larger batches or
longer contexts.

## Source

Timed kernels of ai-dynamo/aiconfigurator at 095f58a5 (H100) and the latency model fitted to them
"""

from __future__ import annotations

from dataclasses import replace

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.cost import sequences_per_replica
from configurator.core.examples import example, example_device
from configurator.core.latency import floor_share, parts
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth
from rules._ask import decodes, grouped, is_grouped, rank_heads
from rules._devices import device, name, named


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case) and named(case) and device(case).rate("bf16")[0] > 0


def _share(case: Case) -> Real:
    ranks = maximum(case.workload.tensor_parallel, 1)
    a = replace(
        grouped(case),
        n_heads=rank_heads(case),
        n_kv_heads=maximum(grouped(case).n_kv_heads // ranks, 1),
    )
    found = parts(
        a,
        device(case),
        batch=sequences_per_replica(case),
        context=case.workload.context,
        kv_dtype=case.workload.kv,
    )
    return floor_share(found)


def holds(case: Case) -> Truth:
    return _share(case) <= 0.5


def says(case: Case) -> str:
    work = case.workload
    return (
        f"at batch {work.batch} and {work.context:,} tokens {_share(case):.0%} of a layer's "
        f"attention on {name(case)} is a fixed cost: KV heads change memory more than speed here; "
        "choose them for quality and cache"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads", "parallel/kv-heads-fit-ranks"),
    holds=holds,
    says=says,
    passes=lambda: (example(context=32768, batch=16, device=example_device()),),
    fails=lambda: (example(context=2048, batch=1, device=example_device()),),
)
