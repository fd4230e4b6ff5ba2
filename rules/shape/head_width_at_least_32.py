"""A head is at least 32 wide.

## What

``d_head >= 32``; for MLA the part without position and the rotary part together.

## Why

Heads of 16 cost 0.018 nats at a fixed budget (Vaswani), 0.033 on LM1B (Shazeer) and 0.048 when
only the keys shrink (Vaswani). 32 was free in one row of Vaswani's table but cost 0.03 to 0.04
against 64 under MQA at 1B and 3B. Narrower heads also leave most of a tensor-core tile idle.
In our small models of width 64, induction was learnt later with each halving (mean loss 1.35
nats with a head of 64, 1.86 with heads of 16; heads of 4 never learnt it), while copying was level
from heads of 32 to 16. This guardrail cannot be switched off.

## Instead

Fewer, wider heads: 64 below a billion parameters, 128 above.

## Source

Vaswani et al. 2017 table 3; Shazeer 2019 (arXiv 1911.02150); Brandon et al. 2024 (arXiv
2405.12981); measured here: outputs/studies/heads.md
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import head_width


def holds(case: Case) -> Truth:
    return head_width(case) >= 32


def says(case: Case) -> str:
    heads, width = case.attention.n_heads, head_width(case)
    fewer = max(heads * width // 64, 1)
    return (
        f"d_head {width} is below 32: 16-wide heads cost 0.018 to 0.048 nats in ablations; take "
        f"{fewer} head{'s' * (fewer > 1)} of 64 instead of {heads} of {width}"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.MODERATE,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=512, n_heads=16, n_kv_heads=16, d_head=32),),
    fails=lambda: (
        example(d_model=512, n_heads=32, n_kv_heads=32, d_head=16),
        example(kv_lora_rank=128, qk_nope_head_dim=16, qk_rope_head_dim=8),
    ),
)
