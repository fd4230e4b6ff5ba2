"""Keys and values are cached in one of the types that engines build together.

## What

A block-quantised cache has the same type for keys and values, and it is q8_0 or q4_0.

## Why

llama.cpp's default build compiles matching pairs of f16, bf16, q8_0 and q4_0; q4_1, q5_0, q5_1
and mixed pairs need the flag for all of them (iq4_nl is not among them), and its Metal kernels
want equal types.

## Instead

q8_0 for both, or a build with all quantised pairs.

## Source

ggml-org/ggml src/ggml-cuda/fattn.cu and src/ggml-metal/ggml-metal-device.m at d99724f2
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth

PAIRS = ("q8_0", "q4_0")


def applies(case: Case) -> bool:
    kv = case.workload.kv
    return any(t.name.startswith(("q", "iq")) for t in (kv.k, kv.v))


def holds(case: Case) -> Truth:
    kv = case.workload.kv
    return kv.k == kv.v and kv.k.name in PAIRS


def says(case: Case) -> str:
    kv = case.workload.kv
    elements = case.attention.cache_elements()
    buildable = "iq4_nl" not in (kv.k.name, kv.v.name)
    return (
        f"a cache of {kv.name} ({elements} values a token and layer) is in no default build of "
        "llama.cpp; use q8_0 for both" + ", or build with all quantised pairs" * buildable
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_dtype="q8_0"),),
    fails=lambda: (example(kv_dtype="k=q8_0,v=q4_0"), example(kv_dtype="iq4_nl")),
)
