"""The link between ranks keeps up with prefill.

## What

Sending what tensor parallelism exchanges in a prefill takes at most half as long as its
arithmetic at half of the dense rate.

## Why

Two all-reduces a layer send ``2 (t - 1) / t`` times the activations from each rank. NVLink does
that in passing; cards on PCIe move 16 to 64 GB/s, and consumer cards may have to go through the
host's memory, which is slower still.

## Instead

Fewer ranks with replicas, pipeline stages over the cards, or devices with a link of their own.

## Source

Arithmetic of a ring all-reduce; stas00/ml-engineering network/README.md at 744d01e; link rates
of the device catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import as_float
from configurator.core.examples import example, example_device
from configurator.core.flops import prefill_flops
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth
from rules._devices import device, name, named


def applies(case: Case) -> Truth:
    suits = named(case) and device(case).interconnect_bytes_per_s > 0 and _rate(case) > 0
    return suits and case.workload.tensor_parallel > 1


def _rate(case: Case) -> float:
    return device(case).rate(case.workload.weight_dtype)[0]


def _sending(case: Case) -> Real:
    """Seconds for a prefill of the batch: two all-reduces a layer in 16-bit, ring fashion."""
    ranks, shape, work = case.workload.tensor_parallel, case.shape, case.workload
    tokens = as_float(work.context) * work.batch
    sent = tokens * 2 * shape.n_layers * 2 * as_float(shape.d_model) * 2 * (ranks - 1) / ranks
    return sent / device(case).interconnect_bytes_per_s


def _computing(case: Case) -> Real:
    """Seconds for the same prefill at half the dense rate of all ranks."""
    return prefill_flops(case) / (0.5 * _rate(case) * case.workload.tensor_parallel)


def holds(case: Case) -> Truth:
    return 2 * _sending(case) <= _computing(case)


def says(case: Case) -> str:
    work = case.workload
    return (
        f"prefilling {work.batch} x {work.context:,} tokens sends for {_sending(case):.2g} s and "
        f"computes for {_computing(case):.2g} s on {work.tensor_parallel} x {name(case)}; use "
        "fewer ranks with replicas, or pipeline stages"
    )


CARDS = example_device(kind="consumer-gpu", count=4, interconnect_bytes_per_s=16e9)

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.WEAK,
    applies=applies,
    requires=("parallel/ranks-fill-the-target",),
    holds=holds,
    says=says,
    passes=lambda: (example(tensor_parallel=4, device=example_device(count=4)),),
    fails=lambda: (example(tensor_parallel=4, device=CARDS),),
)
