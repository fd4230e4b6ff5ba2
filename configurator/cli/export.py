"""Write a geometry, a recommendation or an existing model as another program's settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import GEOMETRY, QUESTION, SHAPE, TARGET, Given, Output, takes

if TYPE_CHECKING:
    from configurator.interop.export import Exported, Subject

__all__ = ["export"]

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="A config.json, a folder with one, - for standard input, or a catalog model's name, "
        "in place of a geometry.",
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="FORMAT",
        rich_help_panel="Answer",
        help="huggingface (default), vllm, llama_cpp, litgpt, torchtitan or megatron.",
    ),
]
AsDocument = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        rich_help_panel="Answer",
        help="text (default): what the other program reads; json: the same settings by name.",
    ),
]
_OF_A_FILE = (
    "context", "batch", "kv_dtype", "source_len", "target", "tensor_parallel", "page_size",
    "memory", "bandwidth", "tflops",
)  # fmt: skip


@takes(GEOMETRY, SHAPE, QUESTION, TARGET)
def export(
    given: Given,
    source: Source = None,
    to: To = "huggingface",
    format: AsDocument = None,
    output: Output = None,
) -> int:
    """Write a geometry, or what `recommend` answers, as settings for another program.

    Give --d-model and --n-heads, a budget with --params, or a FILE. What a format cannot express
    is an error that says so. Exit code 1 means that the heads do not allow the ranks asked.
    """
    from configurator.cli.output import form, write_whole
    from configurator.interop.export import RanksError
    from configurator.interop.export import export as exported

    chosen = _form(format)
    if output is not None:
        form(None, output)
    subject, notes = _from_file(source, given) if source else _from_request(given)
    try:
        done = exported(subject, to)
    except RanksError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for line in dict.fromkeys((*notes, *done.warnings)):
        print(f"warning: {line}", file=sys.stderr)
    text = done.text if chosen == "text" else _document(done, notes)
    if output is None:
        sys.stdout.write(text)
    else:
        write_whole(Path(output), text)
        print(f"wrote {output}", file=sys.stderr)
    return 0


def _form(format: str | None) -> str:
    from configurator.core.errors import unknown

    name = (format or "text").strip().lower()
    if name in ("text", "terminal"):
        return "text"
    if name != "json":
        raise unknown("format", name, ("text", "json"), "use text or json")
    return name


def _document(done: Exported, notes: list[str]) -> str:
    """One JSON document; a Hugging Face configuration is one already."""
    from configurator import __version__
    from configurator.render.json import to_json

    if done.format == "huggingface":
        return done.text
    value: dict[str, Any] = {
        "to": done.format,
        "file": done.file,
        "values": done.values,
        "text": done.text,
        "warnings": [*dict.fromkeys((*notes, *done.warnings))],
        "version": __version__,
    }
    return to_json(value) + "\n"


def _from_request(given: Given) -> tuple[Subject, list[str]]:
    """A geometry as it is; for a budget, the geometry that is recommended."""
    from configurator.api import geometry_case
    from configurator.cli.asked import request_of
    from configurator.interop.export import Subject, in_order
    from configurator.question import Question
    from configurator.schema import GeometryRequest

    request = request_of(given)
    if isinstance(request, GeometryRequest):
        case, warnings = geometry_case(request)
    else:
        question = Question(request)
        table, ranked = question.ranked(question.grids(question.frames[0]), question.frames[0])
        case, warnings = table.case(ranked[0]), question.warnings
    return Subject(case=case, layers=in_order(case.shape)), [*warnings, *_broken(case)]


def _broken(case: Any) -> list[str]:
    """A word on each rule of severity error that the geometry breaks."""
    from configurator.assemble import rule_reports

    rules = [r for r in rule_reports(case) if r.verdict == "broken" and r.severity == "error"]
    return [f"{rule.id}: {rule.message}" for rule in rules]


def _from_file(source: str, given: Given) -> tuple[Subject, list[str]]:
    from configurator.core.errors import UsageError
    from configurator.interop.export import subject_from
    from configurator.target import device_of

    for name in given:
        if name not in _OF_A_FILE:
            flag = name.replace("_", "-")
            raise UsageError(
                f"--{flag} describes a geometry, and {source[:120]!r} is one already; use one of "
                f"the two"
            )
    device = device_of(given)
    return subject_from(source, device=device, **given), []
