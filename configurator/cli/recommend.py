"""Recommend a geometry for a parameter budget, a context and a target, with its reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from configurator.cli.options import QUESTION, SHAPE, TARGET, Format, Given, Output, Top, takes

if TYPE_CHECKING:
    from configurator.core.report import Report
    from configurator.render.document import Document

__all__ = ["recommend"]


Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        rich_help_panel="Answer",
        help="Also measure the answer and its alternatives here, for about 30 s (needs torch).",
    ),
]
_VERIFY_S = 30.0


@takes(QUESTION, SHAPE, TARGET)
def recommend(
    given: Given,
    top: Top = None,
    verify: Verify = False,
    format: Format = None,
    output: Output = None,
) -> int:
    """Recommend a geometry for a parameter budget, a context and a target, with its reasons.

    Needs --params; name a --target to learn what fits and how fast it is. Exit code 1 means
    that nothing fits, that a rule of severity error is broken, or with --verify that measured
    cache bytes differ from the prediction.
    """
    from configurator import api
    from configurator.cli.output import deliver, form
    from configurator.schema import Request

    chosen = form(format, output)
    asked = dict(given) if top is None else {**given, "top": top}
    report = api.recommend(Request(**asked)).report
    exact = True
    if verify:
        report, exact = _verified(report)

    def document() -> Document:
        from configurator.render.content import recommendation

        return recommendation(report)

    deliver(report, document, chosen, output)
    errors = any(r.verdict == "broken" and r.severity == "error" for r in report.rules)
    return 1 if errors or not report.fits or not exact else 0


def _verified(report: Report) -> tuple[Report, bool]:
    """The report with its rows measured here, and whether all cache bytes were exact."""
    from configurator import bench

    target = str(report.request.get("target") or "another machine")
    found = bench.verify(report, target=target, budget_s=_VERIFY_S)
    said = found.sentence
    if found.command:
        said = f"{said.rstrip('.')}. On the target run: {found.command}"
    return replace(report, measurements=found.rows, verification=said), found.bytes_exact
