"""Beyond 32,768 tokens, full attention in every layer is chosen on purpose.

## What

Where every layer keeps the whole context and a device is named: one sequence takes at most half
of the memory left for cache.

## Why

A window on most layers cuts the part that grows to a fraction, and such models are published by
several labs (every sixth layer full in Gemma 3, every fourth in OLMo 3). Gemma 2 shrank its
window from 4,096 to 1,024 at a perplexity of 1.64 against 1.63. It changes the model, so it is
offered and never chosen unasked.

## Instead

``--window 4096 --full-every 6``, or a hybrid with linear layers.

## Source

Gemma 2 2024 (arXiv 2408.00118) section 5; Kimi Linear 2025 (arXiv 2510.26692) table 1; own
reading of the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import cache_budget_per_device
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import decodes, layers_all_full, one_sequence, size
from rules._devices import name, named


def applies(case: Case) -> Truth:
    suits = named(case) and decodes(case) and layers_all_full(case)
    return suits and (case.workload.context > 32768)


def holds(case: Case) -> Truth:
    return 2 * one_sequence(case) <= cache_budget_per_device(case)


def says(case: Case) -> str:
    one, left = one_sequence(case), cache_budget_per_device(case)
    layers, context = case.shape.n_layers, case.workload.context
    full = layers // 6
    kept = (full * context + (layers - full) * 4096) / (layers * context)
    return (
        f"one sequence of {context:,} tokens takes {size(one)} where {size(left)} are left for "
        f"cache on {name(case)}; a window of 4,096 on all but every 6th layer would keep "
        f"{kept:.0%} of it (--window 4096 --full-every 6)"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    requires=("memory/weights-fit",),
    holds=holds,
    says=says,
    passes=lambda: (example(context=65536, device=example_device()),),
    fails=lambda: (example(context=262144, device=example_device()),),
)
