"""An encoder uses MHA: it has no cache to save.

## What

``n_kv_heads == n_heads`` in an encoder.

## Why

Sharing K/V exists to shrink the cache that decoding reads. An encoder sees all tokens at once
and keeps nothing, so sharing saves a few weights and gives up key and value capacity. All 15
encoders gathered for the catalog use MHA.

## Instead

As many KV heads as query heads.

## Source

Shazeer 2019 (arXiv 1911.02150) on what sharing is for; own reading of the model catalog
(encoders)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, grouped, is_grouped


def applies(case: Case) -> bool:
    return case.shape.arch == "encoder" and is_grouped(case)


def holds(case: Case) -> Truth:
    return grouped(case).n_kv_heads == grouped(case).n_heads


def says(case: Case) -> str:
    a = grouped(case)
    freed = 2 * (a.n_heads - a.n_kv_heads) * a.d_head * a.d_model * case.shape.n_layers
    return (
        f"{a.n_kv_heads} KV heads for {a.n_heads} query heads save no cache in an encoder, only "
        f"{count(freed)} weights; use {a.n_heads}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=applies,
    requires=("shape/kv-heads-divide-heads",),
    holds=holds,
    says=says,
    passes=lambda: (example(arch="encoder", n_kv_heads=32),),
    fails=lambda: (example(arch="encoder", n_kv_heads=8),),
)
