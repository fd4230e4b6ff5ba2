"""Query heads are a multiple of KV heads.

## What

``n_heads % n_kv_heads == 0``, with at least one KV head and no more than there are query heads.

## Why

Each KV head serves a group of query heads, and every kernel takes groups of one size:
FlashAttention refuses other counts, and PyTorch's ``enable_gqa`` asks for the same.

## Instead

Take the nearest divisor of ``n_heads``. Powers of two also split over devices.

## Source

Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp at 0251105a; pytorch/pytorch
aten/src/ATen/native/transformers/cuda/sdp_utils.cpp at 001f694a
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, listed


def holds(case: Case) -> Truth:
    heads, kv = grouped(case).n_heads, grouped(case).n_kv_heads
    return (kv >= 1) & (kv <= heads) & (heads % maximum(kv, 1) == 0)


def says(case: Case) -> str:
    heads, kv = grouped(case).n_heads, grouped(case).n_kv_heads
    divisors = [n for n in range(1, min(heads, 1024) + 1) if heads % n == 0]
    close = tuple(sorted(sorted(divisors, key=lambda n: abs(n - kv))[:3]))
    return (
        f"{heads} query heads do not divide over {kv} KV heads; take "
        f"{listed(close) if close else 'a positive count'}"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.STRONG,
    applies=is_grouped,
    holds=holds,
    says=says,
    passes=lambda: (example(n_heads=32, n_kv_heads=8), example(n_heads=32, n_kv_heads=32)),
    fails=lambda: (example(n_heads=32, n_kv_heads=5), example(n_heads=8, n_kv_heads=16)),
)
