"""The values that carry position are even in number.

## What

``d_head % 2 == 0`` in a decoder; for MLA ``qk_rope_head_dim % 2 == 0``.

## Why

A rotary embedding turns the values of a query and a key in pairs, so an odd width has one value
left over: transformers refuses such a configuration. A model with learned positions or none is
not held to it.

## Instead

One value more or less; 64 or 128 where it is free.

## Source

Su et al. 2021 (arXiv 2104.09864), section 3.2.2; transformers 5.24.0, ``validate_rope``
"""

from __future__ import annotations

from typing import Any, cast

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import is_grouped, is_latent, latent


def applies(case: Case) -> bool:
    return case.shape.arch == "decoder" and (is_grouped(case) or is_latent(case))


def _width(case: Case) -> Count:
    return latent(case).qk_rope_head_dim if is_latent(case) else cast(Any, case.attention).d_head


def holds(case: Case) -> Truth:
    return _width(case) % 2 == 0


def says(case: Case) -> str:
    width = _width(case)
    what = "a rotary key" if is_latent(case) else "a head"
    return (
        f"{what} of {width}: rotary positions turn values in pairs, and one is left over; "
        f"use {width + 1}"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_head=80, d_model=2560, n_heads=32), example(kv_lora_rank=512)),
    fails=lambda: (
        example(d_head=125, d_model=1000, n_heads=8, n_kv_heads=8),
        example(kv_lora_rank=512, qk_rope_head_dim=63),
    ),
)
