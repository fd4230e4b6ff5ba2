"""A step of decoding has work for every unit of the device.

## What

Sequences times KV heads times tiles of 128 tokens, on one device, are at least its streaming
multiprocessors.

## Why

A decode kernel hands one KV head of one sequence to a unit and may split long contexts, at most
into tiles. With fewer pieces than units a part of the device idles, whatever the kernel does,
and the fixed costs rule. Splitting has its price too: merging took about 25 of 46 us in one
measured case with a single KV head.

## Instead

A larger batch; otherwise choose KV heads for memory and quality, since time hardly depends on
them.

## Source

NVIDIA/TensorRT-LLM docs/source/features/attention.md at 30d2c50c; timed kernels (A100) of
ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import ceil_div, maximum
from configurator.core.cost import sequences_per_replica
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import decodes, grouped, is_grouped
from rules._devices import device, is_nvidia, name


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case) and is_nvidia(case) and device(case).n_units > 0


def _pieces(case: Case) -> Count:
    ranks = maximum(case.workload.tensor_parallel, 1)
    heads = maximum(grouped(case).n_kv_heads // ranks, 1)
    return sequences_per_replica(case) * heads * ceil_div(case.workload.context, 128)


def holds(case: Case) -> Truth:
    return _pieces(case) >= device(case).n_units


def says(case: Case) -> str:
    work = case.workload
    return (
        f"batch {work.batch} and {work.context:,} tokens on {grouped(case).n_kv_heads} KV heads "
        f"give {_pieces(case)} pieces of work for {device(case).n_units} units of {name(case)}: a "
        "part idles; use a larger batch, and choose KV heads for memory and quality"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("parallel/kv-heads-fit-ranks",),
    holds=holds,
    says=says,
    passes=lambda: (example(batch=1, device=example_device()),),
    fails=lambda: (example(batch=1, context=512, device=example_device()),),
)
