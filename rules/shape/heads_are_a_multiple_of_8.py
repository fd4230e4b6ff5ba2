"""A wide model's query heads are a multiple of 8.

## What

``n_heads % 8 == 0`` where ``d_model >= 2048``, unless the target is a machine of one's own.

## Why

A node has eight devices, and heads must split evenly over the ranks that are used. Where the
width gives an awkward count (21, 30, 42), published models round up and decouple the heads from
the width: gpt-oss puts 64 heads of 64 on 2,880, Nemotron-3-Nano 32 of 128 on 2,688.

## Instead

Round the heads up to a multiple of 8, with decoupled heads where the width does not follow.

## Source

Own reading of the model catalog (gpt-oss, Nemotron 3 Nano); vllm-project/vllm
vllm/config/model.py
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import head_width
from rules._devices import is_card_of_a_person


def applies(case: Case) -> Truth:
    return not is_card_of_a_person(case) and case.shape.d_model >= 2048


def holds(case: Case) -> Truth:
    return case.attention.n_heads % 8 == 0


def says(case: Case) -> str:
    heads = case.attention.n_heads
    ranks = max(n for n in (1, 2, 4) if heads % n == 0)
    up = -(-heads // 8) * 8
    return (
        f"{heads} query heads split over {ranks} of a node's 8 devices at most; {up} heads of "
        f"{head_width(case)} would split over all, with decoupled heads if d_model stays "
        f"{case.shape.d_model}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(n_heads=32),),
    fails=lambda: (example(d_model=3584, n_heads=28, n_kv_heads=4),),
)
