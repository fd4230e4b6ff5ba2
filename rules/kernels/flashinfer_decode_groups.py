"""FlashInfer's plain decode knows the query group.

## What

On NVIDIA GPUs: ``n_heads / n_kv_heads`` is 1, 2, 3, 4, 6 or 8, or decoding uses tensor cores.

## Why

FlashInfer's decode on CUDA cores is compiled for those groups. Other groups need its tensor-core
decode, which is also faster for large ones; callers that did not ask for it met failures with
groups of 7, 16 and 64.

## Instead

A KV-head count with one of the groups, or the tensor-core option of the decode wrapper.

## Source

flashinfer-ai/flashinfer include/flashinfer/utils.cuh and flashinfer/decode.py at v0.6.18
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, group, grouped, is_grouped, listed, one_of
from rules._devices import is_nvidia

GROUPS = (1, 2, 3, 4, 6, 8)


def applies(case: Case) -> bool:
    return is_grouped(case) and is_nvidia(case) and decodes(case)


def holds(case: Case) -> Truth:
    return one_of(group(case), GROUPS)


def says(case: Case) -> str:
    a = grouped(case)
    fits = [a.n_heads // g for g in GROUPS if a.n_heads % g == 0]
    close = min(fits, key=lambda n: abs(n - a.n_kv_heads))
    return (
        f"a group of {group(case)} query heads is not in FlashInfer's CUDA-core decode "
        f"({listed(GROUPS)}); use its tensor-core decode, or {close} KV heads"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=8, device=example_device()),),
    fails=lambda: (example(d_model=3584, n_heads=28, n_kv_heads=4, device=example_device()),),
)
