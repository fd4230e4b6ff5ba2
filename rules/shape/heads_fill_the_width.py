"""Heads side by side are as wide as the model.

## What

``n_heads * d_head == d_model``, unless decoupled heads were asked for. MLA states its widths
apart and is not judged.

## Why

The plain rule keeps the output projection square, and every tool that derives a head width as
``d_model / n_heads`` stays right. It is a habit, not a law: of distinct decoder shapes in the
catalog, 29 of 64 from 2025 and 12 of 14 from 2026 depart from it, and those that do should say
so on purpose.

## Instead

Change ``n_heads`` or ``d_head``, or pass ``--allow-decoupled-heads`` and state ``head_dim``.

## Source

Own count over the published configurations of the model catalog
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import grouped, is_grouped


def applies(case: Case) -> bool:
    return is_grouped(case) and not case.workload.allow_decoupled


def holds(case: Case) -> Truth:
    return grouped(case).n_heads * grouped(case).d_head == grouped(case).d_model


def says(case: Case) -> str:
    a = grouped(case)
    remedy = (
        f"n_heads {a.d_model // a.d_head} fits this d_head"
        if a.d_head and a.d_model % a.d_head == 0
        else f"no whole number of heads of {a.d_head} fills it"
    )
    return (
        f"{a.n_heads} heads of {a.d_head} make {a.n_heads * a.d_head}, d_model is {a.d_model}; "
        f"{remedy}, or pass --allow-decoupled-heads"
    )


rule = Rule(
    severity=Severity.ERROR,
    evidence=Evidence.CONVENTION,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_model=4096, n_heads=32, d_head=128),),
    fails=lambda: (example(d_model=2880, n_heads=64, d_head=64),),
)
