"""Train the two-layer test hook of a geometry and say whether it reaches 95 %."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli._training import Device, Resume, Seeds, Steps
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
    from configurator.probe.hook import ProbeResult

__all__ = ["probe"]

Task = Annotated[
    str, typer.Option("--task", metavar="NAME", help="induction (default), recall or copy.")
]
FullWidth = Annotated[
    bool | None,
    typer.Option(
        "--full-width/--shrink",
        help="Train the geometry as it is, or cut to a laptop's size (default: cut on a CPU).",
    ),
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Write the curve as SVG here.")
]


@takes(GEOMETRY, SHAPE, QUESTION, TARGET)
def probe(
    given: Given,
    task: Task = "induction",
    full_width: FullWidth = None,
    plot: Plot = None,
    steps: Steps = None,
    seeds: Seeds = None,
    device: Device = "auto",
    resume: Resume = None,
    format: Format = None,
    output: Output = None,
) -> int:
    """Train the two-layer test hook of a geometry and say whether it reaches 95 %.

    Give --d-model and --n-heads (the widths are cut to what a laptop trains in about a minute a
    seed), or a budget with --params. A one-layer control is trained too. Exit code 1 means that a
    seed missed 95 %, or that the control reached it where it must not; nothing is tried again.
    """
    from configurator.cli._training import Training, need_torch, parse_seeds
    from configurator.cli.output import deliver, form, write_whole

    chosen = form(format, output)
    if plot is not None:
        form("json", plot)
    which = parse_seeds("2" if seeds is None else seeds)
    need_torch("probe")
    from configurator.probe.document import curve_svg, document
    from configurator.probe.hook import STEPS, run

    source = _source(given)
    most = steps or STEPS
    with Training.begin(resume, "mha-probe.checkpoint") as training:
        training.live.plan(most * (len(which) + 1))
        result = run(
            source,
            task=task,
            seeds=which,
            steps=most,
            device=device,
            full_width=full_width,
            resume=training.resume,
            keep=training.keep,
            stop=training.stop,
            watch=training.live.watch,
        )
    deliver(result.to_dict(), lambda: document(result), chosen, output)
    _picture(result, plot, output, write_whole, curve_svg)
    return 0 if result.passed else 1


def _source(given: dict[str, Any]) -> object:
    """The geometry given by hand, or the one recommended for a budget."""
    from configurator.cli.asked import request_of
    from configurator.complete import attention_of
    from configurator.schema import GeometryRequest

    request = request_of(given)
    if isinstance(request, GeometryRequest):
        return attention_of(request)
    from configurator import api

    return api.recommend(request)


def _picture(
    result: ProbeResult, plot: str | None, output: str | None, write_whole: Any, draw: Any
) -> None:
    """The curve beside a Markdown or HTML file, or where it was asked for."""
    import sys

    if plot is None and output is not None and Path(output).suffix in (".md", ".html"):
        from importlib.util import find_spec

        if find_spec("matplotlib") is None:
            print("no picture: it needs matplotlib (the plots extra)", file=sys.stderr)
            return
        plot = str(Path(output).with_suffix(".svg"))
    if plot is not None:
        write_whole(Path(plot), draw(result))
        print(f"wrote {plot}", file=sys.stderr)
