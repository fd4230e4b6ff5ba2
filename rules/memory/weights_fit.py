"""The weights fit the target.

## What

Weights per device plus the reserve stay below the device's memory. Experts are spread over all
devices, everything else over the tensor-parallel ranks.

## Why

Without the weights nothing runs, whatever the cache. The reserve is what engines hold back: by
default they take 0.90 to 0.92 of the card, and activations and buffers come out of that.

## Instead

Narrower weights (fp8 halves bf16), more devices, or fewer parameters.

## Source

vllm-project/vllm vllm/config/cache.py at 002f10e0; ai-dynamo/aiconfigurator
aic-core/src/aiconfigurator_core/systems at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_budget_per_device, params_total, weights_bytes_per_device
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, size
from rules._devices import device, name, named


def holds(case: Case) -> Truth:
    return cache_budget_per_device(case) > 0


def says(case: Case) -> str:
    each, work = weights_bytes_per_device(case), case.workload
    return (
        f"{count(params_total(case.shape))} parameters in {work.weight_dtype} take {size(each)} on "
        f"each {name(case)} of {size(device(case).memory_bytes)} at tensor parallelism "
        f"{work.tensor_parallel}, reserve not counted; use narrower weights, more devices or fewer "
        "parameters"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=named,
    holds=holds,
    says=says,
    passes=lambda: (example(device=example_device()),),
    fails=lambda: (example(device=example_device(memory_bytes=12 * 2**30)),),
)
