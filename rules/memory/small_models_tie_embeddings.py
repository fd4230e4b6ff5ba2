"""A small model shares its embedding with the output head.

## What

An untied output head takes at most a tenth of the parameters.

## Why

A vocabulary of 128,000 at a width of 2,048 is 262M weights, twice if untied. SmolLM3's ablation
found that the same parameters do more as depth than as a second matrix. The tenth is our line;
Llama 3 8B, untied, lies at 6.5 %.

## Instead

Tie the embeddings, or take a smaller vocabulary.

## Source

Hugging Face, The Smol Training Playbook (SmolLM3) on tied embeddings and depth
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import as_float
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth
from rules._ask import count, parameters


def applies(case: Case) -> bool:
    return case.shape.head and not case.shape.tied and case.shape.arch == "decoder"


def _share(case: Case) -> Real:
    return as_float(case.shape.vocab_size) * case.shape.d_model / parameters(case)


def holds(case: Case) -> Truth:
    return _share(case) <= 0.1


def says(case: Case) -> str:
    weights = case.shape.vocab_size * case.shape.d_model
    return (
        f"an untied head for {case.shape.vocab_size:,} tokens holds {count(weights)} of "
        f"{count(parameters(case))} weights, {_share(case):.0%}; use tied embeddings and spend "
        "them on depth"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(),),
    fails=lambda: (
        example(d_model=2048, n_heads=16, n_kv_heads=4, n_layers=16, d_ff=8192, vocab_size=128256),
    ),
)
