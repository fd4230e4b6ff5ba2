"""On cards of one's own, heads are narrow enough to train: 192 at most.

## What

On sm_86, sm_89, sm_120 and sm_121: ``d_head <= 192`` for PyTorch's flash attention backward.

## Why

These cards have less shared memory. PyTorch refuses the backward pass for widths above 192 up to
224 there, and takes 225 to 256 only without dropout.

## Instead

128; or 256 without dropout.

## Source

pytorch/pytorch aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped
from rules._devices import compute_capability, name


def applies(case: Case) -> bool:
    small = (86, 87, 88, 89, 120, 121)
    return is_grouped(case) and compute_capability(case) in small


def holds(case: Case) -> Truth:
    return grouped(case).d_head <= 192


def says(case: Case) -> str:
    a = grouped(case)
    limit = "not at all" if a.d_head <= 224 else "only without dropout"
    return (
        f"PyTorch's flash backward takes heads of {a.d_head} on {name(case)} {limit}; use "
        f"{-(-a.n_heads * a.d_head // 128)} heads of 128 to train there"
    )


CARD = example_device(kind="consumer-gpu", architecture="sm_89")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/head-width-at-most-256",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128, device=CARD),),
    fails=lambda: (example(n_heads=16, n_kv_heads=8, d_head=256, device=CARD),),
)
