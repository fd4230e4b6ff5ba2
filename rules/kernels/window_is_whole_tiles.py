"""A sliding window is a multiple of 128 tokens.

## What

``window % 128 == 0`` where layers keep a window.

## Why

Kernels read keys in tiles, mostly of 128 tokens, and a window that ends inside a tile reads the
rest of it. The tile where it begins is partial anyway; a window of whole tiles wastes no second
one. Timed windowed kernels fit best with one extra tile counted.

## Instead

The next multiple of 128. Windows of 1,024 and 4,096 are the usual ones, 128 the smallest.

## Source

Own residuals over timed kernels of ai-dynamo/aiconfigurator at 095f58a5; own reading of the
model catalog (Gemma 2 and 3, gpt-oss)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import is_windowed


def applies(case: Case) -> bool:
    return is_windowed(case)


def _window(case: Case) -> Count:
    return next(g.scope.size for g in case.shape.groups if g.scope.kind in ("window", "chunk"))


def holds(case: Case) -> Truth:
    return _window(case) % 128 == 0


def says(case: Case) -> str:
    window = _window(case)
    up = -(-window // 128) * 128
    return (
        f"a window of {window:,} tokens reads {up - window} more to the end of a tile; use {up:,}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.WEAK,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(window=4096, full_every=6),),
    fails=lambda: (example(window=2047, full_every=6),),
)
