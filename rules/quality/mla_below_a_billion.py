"""MLA is for a billion parameters and more.

## What

No latent below 10^9 parameters, unless the purpose is benchmarking (``--benchmarking``).

## Why

The evidence below that size conflicts: Zadouri finds MLA best or near best from 183M to 876M,
while TPA's authors and Su see ties, and a low-rank latent on a small corpus lost 4 to 10 %. None
of those studies measured long context. A small cache is no bottleneck either. This guardrail
cannot be switched off; ``--benchmarking`` says why one wants it anyway.

## Instead

GQA, or ``--benchmarking``.

## Source

Zadouri et al. 2025 (arXiv 2505.21487); Zhang et al. 2025 (TPA, arXiv 2501.06425); Mehta et al.
2025 (arXiv 2506.09342)
"""

from __future__ import annotations

from typing import Any

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, is_latent, parameters


def applies(case: Case) -> bool:
    return is_latent(case) and not case.workload.benchmarking


def holds(case: Case) -> Truth:
    return parameters(case) >= 1e9


def says(case: Case) -> str:
    return (
        f"MLA at {count(parameters(case))} parameters: below 1B the published comparisons "
        "conflict; use GQA, or pass --benchmarking"
    )


SMALL: dict[str, Any] = {
    "d_model": 1024,
    "n_heads": 16,
    "n_layers": 24,
    "d_ff": 2816,
    "vocab_size": 50304,
    "tied": True,
    "kv_lora_rank": 256,
}

rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.WEAK,
    applies=applies,
    masks=True,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512),),
    fails=lambda: (example(**SMALL),),
)
