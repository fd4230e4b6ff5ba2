"""Judge a geometry given by hand: every rule that is broken, with its remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from configurator.cli.options import (
    GEOMETRY,
    QUESTION,
    SHAPE,
    TARGET,
    Format,
    Given,
    Output,
    takes,
)

if TYPE_CHECKING:
    from configurator.api import Checked
    from configurator.core.report import Option
    from configurator.schema import GeometryRequest, Request

__all__ = ["check"]


@takes(GEOMETRY, SHAPE, QUESTION, TARGET)
def check(given: Given, format: Format = None, output: Output = None) -> int:
    """Judge a geometry given by hand: every rule that is broken, with its remedy, and its costs.

    Give --d-model and --n-heads, or a budget with --params to judge what `recommend` answers.
    Exit code 1 means that a rule of severity error is broken or that it does not fit.
    """
    from configurator.cli.asked import request_of
    from configurator.cli.output import deliver, form
    from configurator.render.comparison import verdict

    chosen = form(format, output)
    judged = _judge(request_of(given))
    flat = {"request": judged.request, **_blocks(judged.option), "rules": judged.rules}
    flat |= {k: getattr(judged, k) for k in ("warnings", "target", "ok", "command", "version")}
    deliver(flat, lambda: verdict(judged), chosen, output)
    return 0 if judged.ok and judged.option.cache.fits is not False else 1


def _judge(request: GeometryRequest | Request) -> Checked:
    """A geometry as it is; for a budget, the geometry that is recommended."""
    from configurator import api
    from configurator.core.report import Option
    from configurator.repeat import command
    from configurator.schema import GeometryRequest

    if isinstance(request, GeometryRequest):
        return api.check(request)
    report = api.recommend(request).report
    return api.Checked(
        request=report.request,
        option=Option(
            label=report.recommendation.projection,
            recommendation=report.recommendation,
            cache=report.cache,
            memory=report.memory,
            latency=report.latency,
            quality=report.quality,
        ),
        rules=report.rules,
        warnings=report.warnings,
        target=report.target,
        command=command("check", request),
        version=report.version,
    )


def _blocks(option: Option) -> dict[str, Any]:
    names = ("recommendation", "cache", "memory", "latency", "quality")
    return {name: getattr(option, name) for name in names}
