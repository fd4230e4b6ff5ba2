"""A dense feed-forward is 2.3 to 6 times as wide as the model.

## What

``2.3 <= d_ff / d_model <= 6`` for a dense, gated feed-forward.

## Why

A gated feed-forward of ratio 8/3 has the weights of the classic plain one of 4; nine in ten
dense decoders of the catalog lie between 2.67 and 6, with a median of 4 or a little less. The
search tunes ``d_ff`` to meet the budget, and this rule says when it went far.

## Instead

Another depth or width, so that the feed-forward need not make up the budget alone.

## Source

Shazeer 2020 (arXiv 2002.05202); own percentiles over the model catalog (decoders published since
2022)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Real, Truth


def applies(case: Case) -> bool:
    feed_forward = case.shape.feed_forward
    return feed_forward is not None and feed_forward.kind == "dense" and feed_forward.gated


def _ratio(case: Case) -> Real:
    feed_forward = case.shape.feed_forward
    return feed_forward.d_ff / feed_forward.d_model if feed_forward is not None else 0.0


def holds(case: Case) -> Truth:
    return (_ratio(case) >= 2.3) & (_ratio(case) <= 6)


def says(case: Case) -> str:
    ratio, width = _ratio(case), case.shape.d_model
    way = "more" if ratio > 6 else "fewer"
    return (
        f"a feed-forward {ratio:.1f} times as wide as d_model {width} is outside 2.3 to 6; take "
        f"{way} than {case.shape.n_layers} layers, or a d_ff near {8 * width // 3 // 64 * 64} to "
        f"{4 * width}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(d_ff=14336), example(d_ff=11008)),
    fails=lambda: (example(d_ff=32768), example(d_ff=4096)),
)
