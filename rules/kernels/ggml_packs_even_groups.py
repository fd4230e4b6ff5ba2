"""On cards of one's own, query groups are a multiple of 2, best of 8.

## What

On consumer, laptop and edge NVIDIA devices: ``n_heads / n_kv_heads`` is even.

## Why

llama.cpp packs the query heads of one KV head by 8, 4, 2 or 1 into a tile. Groups of 8 fill it;
odd groups run one head at a time and re-read the cache for each.

## Instead

A KV-head count that leaves a group of 2, 4 or 8.

## Source

ggml-org/ggml src/ggml-cuda/fattn.cu at d99724f2
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, grouped, is_grouped, listed
from rules._devices import is_card_of_a_person, is_nvidia, name


def applies(case: Case) -> Truth:
    suits = is_grouped(case) and is_nvidia(case) and is_card_of_a_person(case) and decodes(case)
    return suits and group(case) > 1


def holds(case: Case) -> Truth:
    return group(case) % 2 == 0


def says(case: Case) -> str:
    a = grouped(case)
    fits = tuple(a.n_heads // g for g in (8, 4, 2) if a.n_heads % g == 0)
    remedy = f"{listed(fits)} KV heads" if fits else "an even number of query heads"
    return (
        f"a group of {group(case)} query heads runs one head at a time in llama.cpp on "
        f"{name(case)}; use {remedy}"
    )


CARD = example_device(kind="consumer-gpu", architecture="sm_86")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=4, device=CARD),),
    fails=lambda: (example(d_model=3584, n_heads=28, n_kv_heads=4, device=CARD),),
)
