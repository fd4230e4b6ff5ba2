"""Parameters per layer and width fit the kind of feed-forward.

## What

``s = parameters / (12 * n_layers * d_model^2)`` is below 4 for a dense model and at least 4 for
a mixture of experts. The embedding counts, so the rule speaks from a billion parameters up, and
of decoders alone.

## Why

Dense models lie at 0.7 to 3.0, mixtures at 5.1 and above, none of 147 distinct published shapes
in between. A "dense" shape beyond 4 would need a feed-forward wider than anyone trained.

## Instead

Say that it is a mixture (experts and active parameters), or a wider or deeper stack.

## Source

Own count over the model catalog (147 distinct decoder shapes published since 2024)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import count, density, is_mixture, parameters


def applies(case: Case) -> Truth:
    return case.shape.arch == "decoder" and parameters(case) >= 1e9


def holds(case: Case) -> Truth:
    return density(case) >= 4 if is_mixture(case) else density(case) < 4


def says(case: Case) -> str:
    kind = "a mixture" if is_mixture(case) else "a dense model"
    remedy = (
        "as dense it would be usual: use more experts or say dense"
        if is_mixture(case)
        else "only mixtures of experts are that dense: pass the active ones with --active-params"
    )
    return (
        f"{count(parameters(case))} parameters on {case.shape.n_layers} layers of "
        f"{case.shape.d_model} give s = {density(case):.1f}, unusual for {kind}; {remedy}"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (
        example(),
        example(d_ff=1536, n_experts=128, experts_per_token=8),
    ),
    fails=lambda: (
        example(d_ff=131072),
        example(d_ff=1024, n_experts=8, experts_per_token=2),
    ),
)
