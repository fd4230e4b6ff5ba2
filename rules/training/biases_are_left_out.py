"""Projections have no biases.

## What

``bias == "none"`` for queries, keys, values and output.

## Why

PaLM reports steadier training of large models without them; nanoGPT calls it a bit better and
faster. Of 174 decoders published since 2024 whose answer is known, 138 have none; Qwen kept
biases on Q, K and V up to version 2.5.

## Instead

None; biases on Q, K and V alone if a checkpoint is to be continued.

## Source

Chowdhery et al. 2022 (PaLM, arXiv 2204.02311) section 2; karpathy/nanoGPT model.py at 3adf61e;
own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped, latent


def applies(case: Case) -> bool:
    return isinstance(case.attention, GroupedQuery | Latent)


def _bias(case: Case) -> str:
    return grouped(case).bias if is_grouped(case) else latent(case).bias


def holds(case: Case) -> Truth:
    return _bias(case) == "none"


def says(case: Case) -> str:
    return (
        f"biases on {_bias(case)} projections of {case.shape.n_layers} layers: large models train "
        "steadier without; use none"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(bias="none"),),
    fails=lambda: (example(bias="qkv"),),
)
