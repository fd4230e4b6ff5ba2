"""Recommend a geometry for a parameter budget, a context and a target, with its reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from configurator.cli.options import QUESTION, SHAPE, TARGET, Format, Given, Output, Top, takes

if TYPE_CHECKING:
    from configurator.render.document import Document

__all__ = ["recommend"]


@takes(QUESTION, SHAPE, TARGET)
def recommend(given: Given, top: Top = None, format: Format = None, output: Output = None) -> int:
    """Recommend a geometry for a parameter budget, a context and a target, with its reasons.

    Needs --params; name a --target to learn what fits and how fast it is. Exit code 1 means
    that nothing fits, or that a rule of severity error is broken.
    """
    from configurator import api
    from configurator.cli.output import deliver, form
    from configurator.schema import Request

    chosen = form(format, output)
    asked = dict(given) if top is None else {**given, "top": top}
    report = api.recommend(Request(**asked)).report

    def document() -> Document:
        from configurator.render.content import recommendation

        return recommendation(report)

    deliver(report, document, chosen, output)
    errors = any(r.verdict == "broken" and r.severity == "error" for r in report.rules)
    return 1 if errors or not report.fits else 0
