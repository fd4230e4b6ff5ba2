"""On Apple GPUs, no more than 32 query heads share a KV head.

## What

``n_heads / n_kv_heads <= 32`` where tokens are decoded one at a time.

## Why

MLX's fused decode takes at most 32 rows: query tokens times the query group. A larger group
falls to the unfused path, and speculative decoding with several tokens reaches the limit sooner.

## Instead

More KV heads.

## Source

ml-explore/mlx mlx/backend/metal/scaled_dot_product_attention.cpp at 846d1762
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, grouped, is_grouped, kv_heads_for_groups_of
from rules._devices import is_apple


def applies(case: Case) -> bool:
    return is_grouped(case) and is_apple(case) and decodes(case)


def holds(case: Case) -> Truth:
    return group(case) <= 32


def says(case: Case) -> str:
    a = grouped(case)
    return (
        f"a group of {group(case)} query heads is beyond the 32 of MLX's fused decode; use "
        f"{kv_heads_for_groups_of(a.n_heads, 32)} KV heads or more"
    )


APPLE = example_device(vendor="Apple", kind="laptop", architecture="apple-gpu")

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=1, device=APPLE),),
    fails=lambda: (example(d_model=8192, n_heads=64, n_kv_heads=1, device=APPLE),),
)
