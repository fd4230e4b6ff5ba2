"""MLA's latent is at least four heads wide.

## What

``kv_lora_rank >= 4 * qk_nope_head_dim``.

## Why

At four head widths MLA's loss was as low as that of MHA or lower in each of seven published
comparisons from 183M to 2.9B. Smaller latents lost: with a total latent of half the width 0.3 %
of loss, of a quarter 4.4 %, of an eighth 10 %, on a small corpus. In
our two-layer byte models with heads of 16, ranks of half a head and one head were at +0.149 and
+0.083 bits of MHA's; 23, 32, 64 and 128 lay between +0.011 and +0.038, not told apart.

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
