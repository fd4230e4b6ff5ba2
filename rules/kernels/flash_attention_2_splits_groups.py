"""FlashAttention-2 can split a long context: query heads share KV heads, and no window is set.

## What

On Ampere, Ada and card Blackwell with 8,192 tokens or more: more than one query head per KV
head, or enough sequences and heads to fill the device anyway.

## Why

Its decode folds the query group into rows, and only folded work is split over the context. With
one query head per KV head, or any window, one block reads a head's whole cache: on an A100 two
heads at 131,072 tokens took 3,022 us, 23 ns a token, where the bytes alone need 66 us.

## Instead

GQA, or a batch with as many heads in flight as the device has units.

## Source

Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp at 0251105a; timed kernels of
ai-dynamo/aiconfigurator at 095f58a5
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import sequences_per_replica
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, is_grouped, rank_heads
from rules._devices import device, name, runs_flash_attention_2


def applies(case: Case) -> Truth:
    suits = is_grouped(case) and decodes(case) and runs_flash_attention_2(case)
    return suits and (case.workload.context >= 8192) & (device(case).n_units > 0)


def holds(case: Case) -> Truth:
    folded = (group(case) > 1) & (case.shape.main.scope.kind != "window")
    in_flight = sequences_per_replica(case) * rank_heads(case)
    return folded | (in_flight >= device(case).n_units)


def says(case: Case) -> str:
    in_flight = sequences_per_replica(case) * rank_heads(case)
    why = "no query head shares its KV head" if group(case) == 1 else "a window is set"
    return (
        f"FlashAttention-2 cannot split {case.workload.context:,} tokens here since {why}: "
        f"{in_flight} blocks for {device(case).n_units} units of {name(case)}; use GQA or a larger "
        "batch"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (
        example(n_kv_heads=8, context=32768, device=example_device()),
        example(n_kv_heads=32, context=32768, batch=4, device=example_device()),
    ),
    fails=lambda: (example(n_kv_heads=32, context=32768, device=example_device()),),
)
