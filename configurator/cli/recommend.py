"""Recommend a geometry for a parameter budget, a context and a target, with its reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from configurator.cli.options import (
    LONG_RUN,
    QUESTION,
    SHAPE,
    TARGET,
    Format,
    Given,
    Output,
    Top,
    takes,
)
from configurator.core.errors import UsageError

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
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="AXIS",
        rich_help_panel="Answer",
        help="The answer over an axis, and over two if given twice: context=4k..1M, "
        "batch=1..64:20, params=1B,7B, target=rtx-4090,h100-sxm.",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FILE",
        rich_help_panel="Question",
        help="Advice on converting a model that exists: a config.json, a folder with one, - for "
        "standard input, or a catalog model's name.",
    ),
]
_VERIFY_S = 30.0


@takes(QUESTION, SHAPE, TARGET, LONG_RUN)
def recommend(
    given: Given,
    top: Top = None,
    verify: Verify = False,
    sweep: Sweep = None,
    source: From = None,
    format: Format = None,
    output: Output = None,
) -> int:
    """Recommend a geometry for a parameter budget, a context and a target, with its reasons.

    Needs --params, or --from a model that exists; name a --target to learn what fits and how
    fast it is. Exit code 1 means that nothing fits, that a rule of severity error is broken, or
    with --verify that measured cache bytes differ from the prediction. A --sweep ends with 0:
    each point says its status.
    """
    from configurator import api
    from configurator.cli.output import deliver, form
    from configurator.schema import Request

    how: dict[str, str] = {k: given.pop(k) for k in LONG_RUN if k in given}
    asked = dict(given) if top is None else {**given, "top": top}
    for name, value, other in (
        ("verify", verify, "from" if source is not None else "sweep" if sweep else ""),
        ("top", top, "sweep" if sweep and source is None else ""),
    ):
        if value and other:
            raise UsageError(f"--{name} does not go with --{other}; leave one of them out")
    if source is not None:
        from configurator.cli._convert import converted

        return converted(source, {**asked, **how}, format, output, sweep=bool(sweep))
    if sweep:
        from configurator.cli._sweep import swept

        return swept(asked, sweep, how, format, output)
    for name in how:
        raise UsageError(f"--{name} belongs to --sweep; add one, or leave --{name} out")
    chosen = form(format, output)
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
