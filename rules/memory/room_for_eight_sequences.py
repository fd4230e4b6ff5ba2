"""Eight sequences of the full context fit.

## What

The largest batch at the whole context, over the whole target, is at least 8.

## Why

Decoding one sequence leaves the arithmetic idle; a batch shares each read of the weights.
Published GQA models leave room for a median of 15 full-context sequences on the target that
their size implies (quartiles 6 and 59), so 8 is a fair goal for serving.

## Instead

Half the KV heads, an fp8 cache or a window; or accept that this is a machine for one user.

## Source

Own count over the model and device catalogs (plain GQA decoders published since 2024)
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.cost import max_batch
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth, many
from rules._ask import decodes, one_sequence, size, smaller_cache
from rules._devices import device, is_card_of_a_person, name, named


def applies(case: Case) -> bool:
    return named(case) and decodes(case) and not is_card_of_a_person(case)


def holds(case: Case) -> Truth:
    fit = max_batch(case)
    return (fit >= 8) | (fit < 0)


def says(case: Case) -> str:
    times = f"{device(case).count} x " if device(case).count > 1 else ""
    return (
        f"{times}{name(case)} holds {many(max_batch(case), 'sequence')} of "
        f"{many(case.workload.context, 'token')} at {size(one_sequence(case))} each per rank, "
        f"published models leave room for 6 to 59; to serve more, use {smaller_cache(case)}"
    )


rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.CONVENTION,
    applies=applies,
    requires=("memory/one-sequence-fits",),
    holds=holds,
    says=says,
    passes=lambda: (example(context=32768, device=example_device()),),
    fails=lambda: (example(context=131072, device=example_device()),),
)
