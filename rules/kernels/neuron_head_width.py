"""On AWS Neuron, a head is at most 128 wide.

## What

``d_head <= 128`` on Trainium and Inferentia.

## Why

The NKI flash kernels refuse wider heads, so 256 has no fused path.

## Instead

Twice as many heads of 128.

## Source

The check on head size in AWS Neuron's NKI attention kernels, found by string search
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import is_neuron, name


def applies(case: Case) -> bool:
    return is_grouped(case) and is_neuron(case)


def holds(case: Case) -> Truth:
    return grouped(case).d_head <= 128


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"d_head {a.d_head} is beyond the 128 of Neuron's flash kernels on {name(case)}; use "
        f"{a.n_heads * a.d_head // 128} heads of 128"
    )


TRAINIUM = example_device(vendor="AWS", kind="other", architecture="neuron")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=TRAINIUM),),
    fails=lambda: (example(n_heads=16, n_kv_heads=8, d_head=256, device=TRAINIUM),),
)
