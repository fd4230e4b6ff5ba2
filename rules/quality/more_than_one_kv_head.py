"""There is more than one KV head.

## What

``n_kv_heads > 1`` in a model that decodes with several query heads.

## Why

MQA costs little loss in most studies (-0.008 to 0.015 nats) but 8 points in DeepSeek-V2's four
benchmarks, and it trained less steadily: T5-Large with MQA from scratch had loss spikes and
diverged when fine-tuned on long inputs, where uptrained GQA was stable. Our two-layer MQA
model learnt induction more slowly than MHA (mean loss +1.066 nats) and then got 99.8% right.

## Instead

Two or four KV heads; MQA below 4B if bytes decide everything.

## Source

Ainslie et al. 2023 (arXiv 2305.13245) appendix A; DeepSeek-V2 2024 (arXiv 2405.04434) table 8;
Zadouri et al. 2025 (arXiv 2505.21487); measured here: outputs/studies/mqa.md
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, grouped, is_grouped


def applies(case: Case) -> Truth:
    return is_grouped(case) and decodes(case) and (grouped(case).n_heads > 1)


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads > 1


def says(case: Case) -> str:
    a = grouped(case)
    fewest = next((n for n in (2, 4, 8) if a.n_heads % n == 0), 2)
    return (
        f"MQA with {a.n_heads} query heads: spikes and divergence were seen when training it from "
        f"scratch; {fewest} KV heads cache {fewest} times as much and were stable, or use QK-norm "
        "and a lower learning rate"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(n_kv_heads=2),),
    fails=lambda: (example(n_kv_heads=1),),
)
