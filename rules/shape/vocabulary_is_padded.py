"""The vocabulary is a multiple of 64.

## What

``vocab_size % 64 == 0``: pad the embedding matrix with rows that no token uses.

## Why

The output head is one matrix product with the vocabulary as a dimension; tensor cores run at
full rate when it is a multiple of 64 in 16-bit. GPT-2's 50,257 padded to 50,304 is the classic
case. Nine in ten decoders published since 2022 keep to it. The padding also lets the matrix
split over 2 to 64 ranks.

## Instead

Round up to the next multiple of 64, or of 128.

## Source

Anthony et al. 2024 (arXiv 2401.14489) as summarised in stas00/ml-engineering
training/performance/README.md at 744d01e; own count over the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count


def holds(case: Case) -> Truth:
    return case.shape.vocab_size % 64 == 0


def says(case: Case) -> str:
    rows = case.shape.vocab_size
    padded = -(-rows // 64) * 64
    return (
        f"a vocabulary of {rows:,} is no multiple of 64; pad it to {padded:,}, "
        f"{count((padded - rows) * case.shape.d_model)} weights more"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MODERATE,
    holds=holds,
    says=says,
    passes=lambda: (example(vocab_size=50304),),
    fails=lambda: (example(vocab_size=50257),),
)
