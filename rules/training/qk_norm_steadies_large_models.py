"""From a billion parameters up, queries and keys are normalised.

## What

``qk_norm`` is on for grouped attention from 10^9 parameters. MLA's absorbed form makes it
awkward and is not judged.

## Why

Attention logits grow at high learning rates until training diverges. The instability reproduces
in small models, and QK-norm with z-loss keeps the loss steady over about three decades of
learning rate. It is neutral for the loss otherwise and costs two scales of ``d_head`` a layer.

## Instead

RMSNorm over each query and key head before the product.

## Source

Wortsman et al. 2023 (arXiv 2309.14322); Dehghani et al. 2023 (ViT-22B, arXiv 2302.05442);
karpathy/nanochat
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, grouped, is_grouped, parameters


def applies(case: Case) -> Truth:
    return case.shape.arch == "decoder" and is_grouped(case) and (parameters(case) >= 1e9)


def holds(case: Case) -> Truth:
    return grouped(case).qk_norm


def says(case: Case) -> str:
    extra = 2 * grouped(case).d_head * case.shape.n_layers
    return (
        f"{count(parameters(case))} parameters without QK-norm: logits may grow at high learning "
        f"rates; use it, {extra:,} weights in all, neutral for the loss"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(qk_norm=True),),
    fails=lambda: (example(qk_norm=False),),
)
