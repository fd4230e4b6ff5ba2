"""The advisor against published models: scores, and whom the evidence favours where they differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import Budget, Format, On, Output, Resume, Shard

if TYPE_CHECKING:
    from configurator.backtest import Backtest
    from configurator.catalog.model_card import PublishedModel

__all__ = ["backtest"]

Since = Annotated[
    int,
    typer.Option(
        "--since", metavar="YEAR", rich_help_panel="Question", help="Models from this year on."
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        metavar="NAME[,NAME]",
        rich_help_panel="Question",
        help="Only these: catalog names, or TOML files of models in the catalog's format.",
    ),
]
FreeShape = Annotated[
    bool,
    typer.Option(
        "--free-shape",
        rich_help_panel="Question",
        help="Only width and depth from the parameter budget, against dense models.",
    ),
]


def backtest(
    since: Since = 2024,
    models: Models = None,
    free_shape: FreeShape = False,
    on: On = None,
    shard: Shard = None,
    budget: Budget = None,
    resume: Resume = None,
    format: Format = None,
    output: Output = None,
) -> int:
    """The advisor against published models: scores, and whom the evidence favours.

    Each published decoder is asked about with its parameters, width, depth, context and a target
    by its size. --output DIR writes backtest.md and backtest.json into a folder that exists.
    """
    from configurator.backtest import backtest as run
    from configurator.cli.output import check_writable, deliver, form, write_whole
    from configurator.core.units import parse_seconds
    from configurator.render.backtest import document

    folder = Path(output) if output and Path(output).is_dir() else None
    chosen = form(format, None if folder else output)
    if output is not None:
        check_writable("--output", Path(output))
    names = None if models is None else _models(models)
    found = run(
        since=since,
        on=on,
        shard=shard,
        resume=resume,
        budget_s=None if budget is None else parse_seconds(budget),
        models=names,
    )
    for one in found.refused:
        print(f"{one['model']} was left out: {one['reason']}", file=sys.stderr)
    if len(found.models) < found.asked:
        print(f"{len(found.models)} of {found.asked} models; scores are over these",
              file=sys.stderr)  # fmt: skip
    if free_shape:
        deliver(found.free_shape, lambda: _shapes(found), chosen, output)
        return 0
    if folder is None:
        deliver(found, lambda: document(found), chosen, output)
        return 0
    from configurator.render.json import to_json
    from configurator.render.markdown import to_markdown

    write_whole(folder / "backtest.md", to_markdown(document(found)))
    write_whole(folder / "backtest.json", to_json(found) + "\n")
    print(f"wrote {folder / 'backtest.md'} and {folder / 'backtest.json'}", file=sys.stderr)
    return 0


def _models(text: str) -> list[str | PublishedModel]:
    from configurator.catalog.model_card import from_table
    from configurator.catalog.store import read_toml
    from configurator.core.errors import UsageError

    found: list[str | PublishedModel] = []
    if not text.strip(" ,"):
        raise UsageError(f"models {text!r} names none; leave it out to ask about all")
    for name in filter(None, (part.strip() for part in text.split(","))):
        if not name.endswith(".toml"):
            found.append(name)
            continue
        document = read_toml(Path(name))
        shared = document.pop("defaults", {})
        found += [from_table(key, {**shared, **table}, name) for key, table in document.items()]
    return found


def _shapes(found: Backtest) -> Any:
    from configurator.render.backtest_models import free_shape
    from configurator.render.document import Document

    plain = found.free_shape["plain"]
    return Document(
        title="Width and depth from a budget, against published dense models",
        answer=(
            f"both within 25 % for {100 * plain['near']:.0f} % of plain dense shapes, "
            f"{100 * plain['near_with_vocabulary']:.0f} % with the vocabulary given"
        ),
        asked=f"{plain['models']} plain dense decoders published since {found.since}",
        sections=free_shape(found.free_shape),
    )
