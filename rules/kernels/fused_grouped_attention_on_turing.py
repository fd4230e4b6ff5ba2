"""Before Ampere, grouped attention needs care: there is no FlashAttention-2.

## What

On Volta and Turing (V100, T4) query heads do not share KV heads, or the caller repeats K and V.

## Why

FlashAttention-2 starts at Ampere. PyTorch's memory-efficient path runs on these cards, but in
the releases up to 2.10 it refused unequal head counts, so grouped attention dropped to the math
path with the whole score matrix in memory. Current source accepts it.

## Instead

A PyTorch whose memory-efficient path takes groups, K and V repeated before the call, or a server
with its own kernels. The cache stays as small as it is.

## Source

Dao-AILab/flash-attention README.md at 0251105a; pytorch/pytorch
aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import group, grouped, is_grouped
from rules._devices import compute_capability, name


def applies(case: Case) -> bool:
    return is_grouped(case) and 0 < compute_capability(case) < 80


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads == grouped(case).n_heads


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"{a.n_heads} query heads on {a.n_kv_heads} KV heads fall to PyTorch's math path on "
        f"{name(case)} in older releases; use a newer PyTorch, or repeat K and V {group(case)} "
        "times in the call, not in the cache"
    )


TURING = example_device(architecture="sm_75")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=32, device=TURING),),
    fails=lambda: (example(n_kv_heads=8, device=TURING),),
)
