"""Tensor parallelism divides the devices of the target.

## What

``devices % tensor_parallel == 0``, so that whole replicas of the attention use every device.

## Why

A rank is one device. More ranks than devices cannot start, and a remainder stays idle.

## Instead

A divisor of the device count.

## Source

vllm-project/vllm, which starts one worker for each rank (vllm/config/model.py)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import listed
from rules._devices import device, name, named


def holds(case: Case) -> Truth:
    ranks = maximum(case.workload.tensor_parallel, 1)
    return (ranks <= device(case).count) & (device(case).count % ranks == 0)


def says(case: Case) -> str:
    devices = device(case).count
    valid = tuple(t for t in range(1, min(devices, 64) + 1) if devices % t == 0)
    return (
        f"{case.workload.tensor_parallel} ranks on {devices} x {name(case)}: use tensor "
        f"parallelism {listed(valid)}"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=named,
    holds=holds,
    says=says,
    passes=lambda: (example(tensor_parallel=4, device=example_device(count=8)),),
    fails=lambda: (
        example(tensor_parallel=8, device=example_device(count=4)),
        example(tensor_parallel=4, device=example_device(count=6)),
    ),
)
