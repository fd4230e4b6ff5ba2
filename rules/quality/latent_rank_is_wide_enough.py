"""MLA's latent is at least four heads wide.

## What

``kv_lora_rank >= 4 * qk_nope_head_dim``.

## Why

At four head widths MLA's loss was as low as that of MHA or lower in each of seven published
comparisons from 183M to 2.9B. Smaller latents lost: with a total latent of half the width 0.3 %
of loss, of a quarter 4.4 %, of an eighth 10 %, on a small corpus. In
our two-layer byte models with heads of 16, a rank of 64 was at +0.011 +- 0.036 bits of MHA's, a
rank of 16 at +0.083 +- 0.048 and a rank of 8 at +0.149 +- 0.075.

## Instead

512 for heads of 128.

## Source

Zadouri et al. 2025 (arXiv 2505.21487); Su 2025 (what makes MLA good, parts I to VI); Mehta et
al. 2025 (arXiv 2506.09342); DeepSeek-V2 2024 (arXiv 2405.04434); measured
here: outputs/studies/mla-rank.md
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent


def holds(case: Case) -> Truth:
    return latent(case).kv_lora_rank >= 4 * latent(case).qk_nope_head_dim


def says(case: Case) -> str:
    a = latent(case)
    return (
        f"a latent of {a.kv_lora_rank} is {a.kv_lora_rank / a.qk_nope_head_dim:.1f} heads of "
        f"{a.qk_nope_head_dim}; equality with MHA was shown at 4: use {4 * a.qk_nope_head_dim}"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=is_latent,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512),),
    fails=lambda: (example(kv_lora_rank=256),),
)
