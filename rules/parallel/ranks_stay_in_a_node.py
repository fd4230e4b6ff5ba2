"""Tensor parallelism stays inside one machine.

## What

``tensor_parallel`` is at most the devices of one node.

## Why

Every layer exchanges activations twice, on the critical path of each token. Inside a node the
link reaches about 78 to 82 % of hundreds of GB/s; between nodes it is several times slower.
Across nodes, experts or pipeline stages are what is spread.

## Instead

One node's worth of ranks, with experts, stages or replicas over the nodes.

## Source

stas00/ml-engineering network/README.md at 744d01e; Anthony et al. 2024 (arXiv 2401.14489)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import several_ranks
from rules._devices import device, named


def _per_node(case: Case) -> Count:
    return max(device(case).count // max(device(case).nodes, 1), 1)


def applies(case: Case) -> Truth:
    return named(case) and several_ranks(case)


def holds(case: Case) -> Truth:
    return case.workload.tensor_parallel <= _per_node(case)


def says(case: Case) -> str:
    return (
        f"{case.workload.tensor_parallel} ranks span {device(case).nodes} machines of "
        f"{_per_node(case)} devices; use tensor parallelism {_per_node(case)} and spread experts, "
        "stages or replicas"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("parallel/ranks-fill-the-target",),
    holds=holds,
    says=says,
    passes=lambda: (example(tensor_parallel=8, device=example_device(count=16, nodes=2)),),
    fails=lambda: (
        example(n_kv_heads=16, tensor_parallel=16, device=example_device(count=16, nodes=2)),
    ),
)
