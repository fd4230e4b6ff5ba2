"""Tensor parallelism is a power of two.

## What

1, 2, 4, 8 or 16 ranks.

## Why

Head counts, widths and vocabularies are built from powers of two, so other rank counts divide
few models; 3 or 6 ranks usually need padding somewhere.

## Instead

The next power of two below.

## Source

Anthony et al. 2024 (arXiv 2401.14489): per-rank widths divisible by as large a power of two as
possible
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import power_of_two, power_of_two_below, several_ranks


def holds(case: Case) -> Truth:
    return power_of_two(case.workload.tensor_parallel)


def says(case: Case) -> str:
    ranks = case.workload.tensor_parallel
    return (
        f"{ranks} ranks divide few shapes evenly; use {power_of_two_below(ranks)}, and the other "
        "devices for replicas"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=several_ranks,
    holds=holds,
    says=says,
    passes=lambda: (example(tensor_parallel=4),),
    fails=lambda: (example(d_model=6144, n_heads=48, n_kv_heads=12, tensor_parallel=6),),
)
