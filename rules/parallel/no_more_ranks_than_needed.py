"""Tensor parallelism is as small as memory allows.

## What

With half the ranks, the weights and the batch no longer fit. Not judged where latency is the
priority: more ranks do answer sooner.

## Why

Small shards run at a worse share of bandwidth: a 7B over eight A100s reached 0.35 of it, on one
0.69. Each split also adds two exchanges a layer, and copies KV heads once there are more ranks.

## Instead

Half the ranks and twice the replicas: the same devices serve more sequences.

## Source

meta-pytorch/gpt-fast README.md (achieved bandwidth); Anthony et al. 2024 (arXiv 2401.14489)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.cost import memory, weights_bytes_per_device
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import size
from rules._devices import named


def applies(case: Case) -> Truth:
    suits = named(case) and case.workload.priority != "latency"
    return suits and (case.workload.tensor_parallel > 1) & (case.workload.tensor_parallel % 2 == 0)


def _halved(case: Case) -> Case:
    ranks = maximum(case.workload.tensor_parallel // 2, 1)
    return replace(case, workload=replace(case.workload, tensor_parallel=ranks))


def holds(case: Case) -> Truth:
    return np.logical_not(memory(_halved(case)).fits)


def says(case: Case) -> str:
    ranks = case.workload.tensor_parallel
    each = weights_bytes_per_device(_halved(case))
    return (
        f"{ranks} ranks where {ranks // 2} would do: {size(each)} of weights on each of them, and "
        f"the batch still fits; use {ranks // 2} for throughput, {ranks} for latency"
    )


BIG: dict[str, Any] = {
    "d_model": 8192,
    "n_heads": 64,
    "n_layers": 80,
    "d_ff": 28672,
    "tensor_parallel": 4,
    "batch": 8,
    "context": 32768,
}

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("parallel/ranks-fill-the-target", "memory/batch-fits"),
    holds=holds,
    says=says,
    passes=lambda: (example(**BIG, device=example_device(count=4)),),
    fails=lambda: (example(tensor_parallel=8, device=example_device(count=8)),),
)
