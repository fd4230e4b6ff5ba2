"""MLA keeps a rotary key of half a head.

## What

``qk_rope_head_dim >= qk_nope_head_dim / 2``.

## Why

Position cannot pass through the shared latent, so a small key of its own carries it. Dropping it
cost 2 to 3 % of loss, and every comparison in which MLA equals MHA used half a head. 48 instead
of 32 helped slightly at 876M.

## Instead

64 for heads of 128; it costs 64 cached values a layer, an eighth of the latent.

## Source

DeepSeek-V2 2024 (arXiv 2405.04434); Mehta et al. 2025 (arXiv 2506.09342); Zadouri et al. 2025
(arXiv 2505.21487)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent


def holds(case: Case) -> Truth:
    return 2 * latent(case).qk_rope_head_dim >= latent(case).qk_nope_head_dim


def says(case: Case) -> str:
    a = latent(case)
    return (
        f"a rotary key of {a.qk_rope_head_dim} beside heads of {a.qk_nope_head_dim}: MLA was "
        f"tested with half a head; use {a.qk_nope_head_dim // 2}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=is_latent,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, qk_rope_head_dim=64),),
    fails=lambda: (example(kv_lora_rank=512, qk_rope_head_dim=16),),
)
