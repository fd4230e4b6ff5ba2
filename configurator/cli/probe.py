"""Train the two-layer test hook of a geometry and say whether it reaches 95 %."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
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
from configurator.core.errors import MissingExtra

if TYPE_CHECKING:
    from configurator.probe.hook import ProbeResult

__all__ = ["probe"]

_TRAINED = (
    "d_model", "n_heads", "n_kv_heads", "d_head", "allow_decoupled_heads", "kv_lora_rank",
    "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
)  # fmt: skip
_SAID = ("window", "full_every", "arch")

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
    from configurator.cli._training import Training, check_files, need_torch, parse_seeds
    from configurator.cli.output import form

    chosen = form(format, output)
    check_files(output, plot)
    which = parse_seeds("2" if seeds is None else seeds)
    need_torch("probe")
    picture = _picture(plot, output, chosen)
    from configurator.probe.hook import STEPS, run
    from configurator.repeat import repeated

    source, unused = _source(given)
    own = {"task": task, "steps": steps, "seeds": seeds, "device": device, "full_width": full_width}
    own = {name: value for name, value in own.items() if value not in ("induction", "auto")}
    command = repeated("probe", given | own)
    with Training.begin(resume, "mha-probe.checkpoint") as training:
        result = run(
            source,
            task=task,
            seeds=which,
            steps=steps or STEPS,
            device=device,
            full_width=full_width,
            resume=training.resume,
            keep=training.keep,
            stop=training.stop,
            watch=training.live.watch,
            plan=training.live.plan,
        )
        training.live.close()
        result = replace(result, warnings=(*result.warnings, *unused))
        _write(result, command, chosen, output, picture)
    return 0 if result.passed else 1


def _source(given: dict[str, Any]) -> tuple[object, list[str]]:
    """The geometry given by hand, or the report for a budget; and warnings of what is not used."""
    from configurator.cli.asked import request_of
    from configurator.complete import attention_of
    from configurator.schema import GeometryRequest

    request = request_of(given)
    if not isinstance(request, GeometryRequest):
        from configurator import api

        return api.recommend(request), []
    from configurator.probe.hook import not_trained

    said = not_trained(request.window, request.arch)
    used = {*_TRAINED, *_SAID}
    if request.kv_lora_rank:  # a latent has no KV heads, and one name for the width is enough
        used -= {"n_kv_heads", "d_head" if request.qk_nope_head_dim else ""}
    stray = [f"--{name.replace('_', '-')}" for name in given if name not in used]
    if stray:
        said.append(f"not used, since the attention alone is trained: {', '.join(stray)}")
    return attention_of(request), said


def _picture(plot: str | None, output: str | None, chosen: str) -> Path | None:
    """Where the curve is drawn: where it was asked for, else beside a Markdown or HTML file.

    Raises ``MissingExtra`` where it was asked for and cannot be drawn.
    """
    from importlib.util import find_spec

    beside = output is not None and chosen in ("markdown", "html")
    if plot is None and not beside:
        return None
    if find_spec("matplotlib") is None:
        if plot is not None:
            raise MissingExtra("plots", "matplotlib", "--plot")
        print("no picture: it needs matplotlib (the plots extra)", file=sys.stderr)
        return None
    return Path(plot) if plot is not None else Path(str(output)).with_suffix(".svg")


def _write(
    result: ProbeResult, command: str, chosen: str, output: str | None, picture: Path | None
) -> None:
    """The answer, and the curve's picture, to which a Markdown or HTML file links."""
    from configurator.cli.output import deliver, write_whole
    from configurator.probe.document import curve_svg, document

    if picture is not None:
        write_whole(picture, curve_svg(result))
        print(f"wrote {picture}", file=sys.stderr)
    shown = document(result, command)
    if picture is not None and output is not None and chosen in ("markdown", "html"):
        link = Path(os.path.relpath(picture, Path(output).parent)).as_posix()
        shown = shown.with_pictures((link, "held-out accuracy and loss by training step"))
    value = result.to_dict() | {"command": command}
    deliver(value, lambda: shown, chosen, output)
