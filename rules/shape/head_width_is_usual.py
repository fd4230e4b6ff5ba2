"""Head width is 64, 128 or 256.

## What

``d_head`` of grouped attention is one of the three widths that every engine compiles for.

## Why

64 and 128 have a kernel in each library read for this rulebook, 256 in nearly all; 80, 96, 112
and 192 exist in some, and anything else is padded or falls back to a slow path. Of the decoders
published since 2022, nine in ten use one of the three.

## Instead

The nearest of the three, with the head count changed to fit.

## Source

Dao-AILab/flash-attention csrc/flash_attn/src/static_switch.h at 0251105a;
flashinfer-ai/flashinfer flashinfer/aot.py at v0.6.18; ggml-org/ggml src/ggml-cuda/fattn.cu at
d99724f2; own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, listed, one_of

USUAL = (64, 128, 256)


def holds(case: Case) -> Truth:
    return one_of(grouped(case).d_head, USUAL)


def says(case: Case) -> str:
    a = grouped(case)
    total = a.n_heads * a.d_head
    options = [f"{total // w} of {w}" for w in USUAL if total % w == 0]
    return (
        f"{a.n_heads} heads of {a.d_head}: not every engine has a kernel for this width; take "
        f"{' or '.join(options) or 'heads of ' + listed(USUAL)}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=is_grouped,
    requires=("shape/head-width-at-least-32",),
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=128), example(n_heads=64, d_head=64)),
    fails=lambda: (example(d_model=2560, n_heads=32, n_kv_heads=32, d_head=80),),
)
