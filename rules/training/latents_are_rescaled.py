"""MLA's latent is wide enough to need no rescaling.

## What

``d_model <= 4 * kv_lora_rank``; above it, multiply the latents by ``sqrt(d_model / rank)``.

## Why

Keys from the latent and rotary keys straight from the stream differ in variance by about
``d_model / rank`` at the start, so one part of the score outweighs the other. One study found
that MLA and grouped latents gain from the factor. A ratio of 4 is a factor of 2, and DeepSeek's
14 is one of 3.7; the line at 4 is ours.

## Instead

The factor in the forward pass, or the same in the initial scale of the up-projections.

## Source

Multi-Head Low-Rank Attention 2026 (arXiv 2603.02188)
"""

from __future__ import annotations

from math import sqrt

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent


def holds(case: Case) -> Truth:
    return latent(case).d_model <= 4 * latent(case).kv_lora_rank


def says(case: Case) -> str:
    a = latent(case)
    factor = sqrt(int(a.d_model) / int(a.kv_lora_rank))
    return (
        f"a latent of {a.kv_lora_rank} on d_model {a.d_model}: use a factor of {factor:.2f} on the "
        "latents, so that rotary and latent keys start with one variance"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.WEAK,
    applies=is_latent,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=2048, n_heads=16, kv_lora_rank=512),),
    fails=lambda: (example(d_model=7168, n_heads=64, kv_lora_rank=512),),
)
