"""The work items of decoding fill the device's units.

## What

Sequences times KV heads on one device are at least its streaming multiprocessors.

## Why

A decode kernel hands one KV head of one sequence to a unit. Fewer items than units leave the
rest idle unless the kernel splits the context, which most do by themselves and some only when
told (multi-block decode in TensorRT-LLM). Merging the splits has its price: about 25 of 46 us in
one measured case with a single KV head.

## Instead

A larger batch; otherwise check that the engine splits long contexts.

## Source

NVIDIA/TensorRT-LLM docs/source/features/attention.md at 30d2c50c; timed kernels (A100) of
ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.cost import sequences_per_replica
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import decodes, grouped, is_grouped
from rules._devices import device, is_nvidia, name


def applies(case: Case) -> bool:
    return is_grouped(case) and decodes(case) and is_nvidia(case) and device(case).n_units > 0


def _items(case: Case) -> Count:
    ranks = maximum(case.workload.tensor_parallel, 1)
    return sequences_per_replica(case) * maximum(grouped(case).n_kv_heads // ranks, 1)


def holds(case: Case) -> Truth:
    return _items(case) >= device(case).n_units


def says(case: Case) -> str:
    return (
        f"{_items(case)} items of decoding for {device(case).n_units} units of {name(case)}: the "
        "kernel must split the context; use multi-block or split-KV decoding in the engine, or a "
        "larger batch"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("parallel/kv-heads-fit-ranks",),
    holds=holds,
    says=says,
    passes=(example(batch=16, device=example_device()),),
    fails=(example(batch=1, device=example_device()),),
)
