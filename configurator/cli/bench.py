"""Time a geometry and its alternatives on this machine, against what was predicted."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import (
    GEOMETRY,
    LONG_RUN,
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
    from collections.abc import Callable, Iterator

    from configurator.core.case import Case
    from configurator.core.kinds import Attention
    from configurator.render.document import Document

__all__ = ["bench", "progress_bar"]

_PANEL = "Benchmark"
_PHASES = "decode,prefill"
Phase = Annotated[
    str,
    typer.Option(
        "--phase", metavar="NAME[,NAME]", rich_help_panel=_PANEL, help="decode, prefill or both."
    ),
]
Formulations = Annotated[
    str | None,
    typer.Option(
        "--formulations", metavar="NAME[,NAME]", rich_help_panel=_PANEL,
        help="Only these, such as sdpa,folded (default: all that the device has).",
    ),
]  # fmt: skip
Device = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME", rich_help_panel=_PANEL,
        help="Torch's name: cpu, cuda, mps (default: the best there is).",
    ),
]  # fmt: skip
Compiled = Annotated[
    bool,
    typer.Option(
        "--compile/--no-compile", rich_help_panel=_PANEL,
        help="Also time compiled formulations, last: a minute each (default: on a GPU).",
    ),
]  # fmt: skip
Only = Annotated[
    bool,
    typer.Option("--only", rich_help_panel=_PANEL, help="The geometry alone, no alternatives."),
]


@takes(GEOMETRY, SHAPE, QUESTION, TARGET, LONG_RUN)
def bench(
    given: Given,
    phase: Phase = _PHASES,
    formulations: Formulations = None,
    device: Device = None,
    compiled: Compiled = False,
    only: Only = False,
    format: Format = None,
    output: Output = None,
) -> int:
    """Time a geometry and its alternatives on this machine, against what was predicted.

    Give --d-model and --n-heads, or a budget with --params. Without --budget it stops after 60 s,
    the most telling points first. Exit code 1 means that cache bytes differ from the prediction.
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("bench", "torch", "bench") from None
    from configurator.attention.device import pick_device
    from configurator.bench.cases import points_of
    from configurator.bench.machine import default_device
    from configurator.bench.sweep import document, rows_file, run
    from configurator.bench.whole import check_cache
    from configurator.bench.words import bench_document
    from configurator.cli.output import check_writable, deliver, form
    from configurator.core.units import parse_seconds
    from configurator.render.json import plain

    chosen = form(format, output)
    if output is not None:
        check_writable("--output", Path(output))
    how = {key: given.pop(key, None) for key in ("on", "shard", "budget", "resume")}
    budget = parse_seconds(how["budget"] or "60s")
    where = default_device() if device is None else pick_device(device)
    own = {
        "phase": None if phase == _PHASES else phase, "formulations": formulations,
        "device": device, "compile": compiled or None, "only": only or None,
        "budget": how["budget"],
    }  # fmt: skip
    case, shapes, command, asked = _asked(given, own)
    there = _node_with(case, how["on"])
    whole = check_cache(case, where)
    points = points_of(
        case,
        shapes[:1] if only else shapes,
        device="best" if there and device is None else where,
        phases=_phases(case, phase),
        formulations=tuple(f.strip() for f in formulations.split(",")) if formulations else (),
        compiled=compiled or where.startswith("cuda"),
    )
    if there is None:
        _elsewhere(case)
    keep = None if how["resume"] else rows_file(output)
    with progress_bar() as told:
        results = run(
            points, on=how["on"], shard=how["shard"], budget_s=budget, resume=how["resume"],
            keep=keep, accelerator=there, progress=told,
        )  # fmt: skip
    found = document(results, asked=asked, command=command, cache=plain(whole))
    pictures = _pictures(found["rows"], output) if chosen in ("markdown", "html") else ()

    def drawn() -> Document:
        return bench_document(found).with_pictures(*pictures)

    deliver(found, drawn, chosen, output)
    if keep is not None and how["shard"]:
        print(f"rows are in {keep}: join the parts with merge", file=sys.stderr)
    elif keep is not None:
        keep.unlink(missing_ok=True)
    differ = any(row["status"] == "bytes differ" for row in found["rows"])
    return 1 if differ or not whole.exact else 0


def _asked(given: Given, own: dict[str, Any]) -> tuple[Case, list[Attention], str, str]:
    """The case, the geometries to compare, the command that repeats it, and what was asked."""
    from configurator import api
    from configurator.bench.cases import alternatives
    from configurator.bench.verification import geometries
    from configurator.cli.asked import request_of
    from configurator.repeat import command
    from configurator.schema import GeometryRequest

    request = request_of(given)
    if isinstance(request, GeometryRequest):
        case, warnings = api.geometry_case(request)
        shapes = alternatives(case.attention)
    else:
        report = api.recommend(request).report
        shapes, _ = geometries(report)
        case, warnings = api.geometry_case(_as_geometry(request, report.recommendation))
        warnings = [*report.warnings, *warnings]
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    work = case.workload
    asked = f"context {work.context:,}, batch {work.batch}, cache {work.kv.name}"
    return case, shapes, command("bench", request, **own), asked


def _as_geometry(request: Any, found: Any) -> Any:
    """A recommendation as a geometry given by hand, under the same workload and target."""
    from configurator.schema import GeometryRequest

    known = GeometryRequest.model_fields
    values = {k: v for k, v in request.given().items() if k in known}
    values |= {k: v for k in type(found).__dataclass_fields__ if k in known
               and (v := getattr(found, k))}  # fmt: skip
    values["tie_embeddings"] = found.tied_embeddings
    if found.projection == "MLA":  # both follow from the ranks
        values.pop("n_kv_heads", None)
        values.pop("d_head", None)
    return GeometryRequest(**values)


def _phases(case: Case, asked: str) -> list[str]:
    """The phases asked for; an encoder has no decode."""
    phases = [name.strip() for name in asked.split(",")]
    if case.shape.arch != "encoder":
        return phases
    print("note: an encoder has no decode; its prompt is timed as causal", file=sys.stderr)
    return [name for name in phases if name != "decode"]


def _node_with(case: Case, on: str | None) -> str | None:
    """The device that a cluster's node must have: the target, where the work goes to Ray."""
    from configurator.runner import parse_on

    if not parse_on(on).startswith("ray") or case.device is None or case.device.name == "host":
        return None
    return case.device.name


def _elsewhere(case: Case) -> None:
    """Say that times are of this machine where the question was about another."""
    if case.device is not None and case.device.name != "host":
        name = case.device.title or case.device.name
        print(
            f"note: cache bytes hold for {name}; times are of this machine. "
            "Run the same command there with --target host",
            file=sys.stderr,
        )


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, where that is a terminal: gives ``told(case, done, total)``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as shown:
        task = shown.add_task("measuring the ceilings", total=None)
        yield lambda case, done, total: shown.update(
            task, completed=done, total=total, description=case
        )


def _pictures(rows: list[dict[str, Any]], output: str | None) -> tuple[tuple[str, str], ...]:
    """Draw what can be drawn beside the report: file names and titles.

    Without matplotlib, or without a file to stand beside, there are none.
    """
    if output is None:
        return ()
    from configurator.cli.output import write_whole
    from configurator.core.errors import UsageError
    from configurator.render.plots import latency_vs_context, predicted_vs_measured

    drawn = []
    for name, title, draw in (
        ("predicted", "Predicted against measured", predicted_vs_measured),
        ("latency", "Decode latency against context", latency_vs_context),
    ):
        path = Path(output).with_suffix(f".{name}.svg")
        try:
            write_whole(path, draw(rows, title))
        except (MissingExtra, UsageError) as error:
            print(f"note: no picture: {error}", file=sys.stderr)
            continue
        drawn.append((path.name, title))
    return tuple(drawn)
