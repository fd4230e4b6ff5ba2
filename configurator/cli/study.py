"""Run one of the exercises: heads, mqa or mla-rank, with curves, a table and an answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli._training import Device, Resume, Seeds, Steps
from configurator.cli.options import Format
from configurator.core.errors import UsageError, unknown

if TYPE_CHECKING:
    from configurator.study.result import Study
    from configurator.study.sweep import Effort

__all__ = ["study"]

_NAMES = ("heads", "mqa", "mla-rank")

Which = Annotated[str, typer.Argument(metavar="WHICH", help="heads, mqa or mla-rank.")]
Folder = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel="Answer",
        help="Write WHICH.md, .json and .svg into this folder, not to stdout; it is made where "
        "only its last part is missing.",
    ),
]
Corpus = Annotated[
    str | None,
    typer.Option(
        "--corpus", metavar="FILE", help="mla-rank: a text of your own (default: Python's docs)."
    ),
]
Task = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="mqa: induction (default), recall or copy."),
]
Ranks = Annotated[
    str | None,
    typer.Option("--ranks", metavar="LIST", help="mla-rank: ranks to try, such as 8,16,23."),
]
Heads = Annotated[
    str | None,
    typer.Option("--heads", metavar="LIST", help="heads: head counts to try, such as 1,4,16."),
]


def study(
    which: Which,
    corpus: Corpus = None,
    task: Task = None,
    ranks: Ranks = None,
    heads: Heads = None,
    steps: Steps = None,
    seeds: Seeds = None,
    device: Device = "auto",
    resume: Resume = None,
    format: Format = None,
    output: Folder = None,
) -> int:
    """Run one of the exercises: heads, mqa or mla-rank, with curves, a table and an answer.

    heads: width 64 in 1 to 16 heads; mqa: fewer key/value heads, parameters and cache counted;
    mla-rank: MLA's latent rank against perplexity on real text. Each takes ten
    minutes to an hour on one core; Ctrl-C keeps what is finished.
    """
    from configurator.cli._training import Training, need_torch, parse_seeds
    from configurator.cli.output import deliver

    if which not in _NAMES:
        raise unknown("study", which, _NAMES, hint=f"known: {', '.join(_NAMES)}")
    _refuse_stray(which, {"mla-rank": ("corpus", corpus, "ranks", ranks), "mqa": ("task", task),
                          "heads": ("heads", heads)})  # fmt: skip
    folder = _folder(output)
    chosen = _form(format, folder)
    numbers = parse_seeds("5" if seeds is None else seeds)
    need_torch("study")
    from configurator.study.sweep import Effort

    options = {"corpus": corpus, "task": task, "ranks": _counts("ranks", ranks),
               "heads": _counts("heads", heads)}  # fmt: skip
    with Training.begin(resume, f"mha-study-{which}.checkpoint") as training:
        effort = Effort(
            seeds=numbers,
            steps=steps,
            device=device,
            resume=training.resume,
            keep=training.keep,
            stop=training.stop,
            watch=training.live.watch,
            plan=training.live.plan,
        )
        result = _run(which, effort, options)
        training.live.close()
        if folder is not None:
            _write(result, folder)
        else:
            deliver(result.to_dict(), result.document, chosen, None)
    return 0


def _run(which: str, effort: Effort, options: dict[str, Any]) -> Study:
    if which == "heads":
        from configurator.study.head_count import study_heads

        return study_heads(effort, **({"heads": options["heads"]} if options["heads"] else {}))
    if which == "mqa":
        from configurator.study.mqa import study_mqa

        return study_mqa(effort, **({"task_name": options["task"]} if options["task"] else {}))
    from configurator.study.mla_rank import study_mla_rank

    corpus = options["corpus"]
    return study_mla_rank(
        effort, corpus=None if corpus is None else Path(corpus), sweep_ranks=options["ranks"]
    )


def _write(result: Study, folder: Path) -> None:
    """Markdown with the picture in it, the picture, and everything as JSON."""
    from importlib.util import find_spec

    from configurator.cli.output import write_whole
    from configurator.render.json import to_json
    from configurator.render.markdown import to_markdown

    folder.mkdir(exist_ok=True)
    document = result.document()
    if find_spec("matplotlib") is None:
        print("no picture: it needs matplotlib (the plots extra)", file=sys.stderr)
    else:
        document = document.with_pictures((f"{result.study}.svg", result.title))
        write_whole(folder / f"{result.study}.svg", result.to_svg())
    write_whole(folder / f"{result.study}.md", to_markdown(document))
    write_whole(folder / f"{result.study}.json", to_json(result.to_dict()) + "\n")
    print(f"wrote {result.study}.md, .json and .svg in {folder}", file=sys.stderr)


def _folder(output: str | None) -> Path | None:
    """The folder to write into; where only its last part is missing, it is made at the end."""
    if output is None:
        return None
    from configurator.cli.output import check_writable

    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"output {output!r} is a file; a study writes several, name a folder")
    if not folder.is_dir() and not folder.parent.is_dir():
        raise UsageError(f"output {output!r}: {folder.parent} does not exist; make it first")
    check_writable("--output", folder)
    return folder


def _form(format: str | None, folder: Path | None) -> str:
    from configurator.cli.output import form

    if format is not None and folder is not None:
        raise UsageError("--output writes Markdown, JSON and SVG; leave --format out with it")
    return form(format, None)


def _counts(name: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 0 < int(part[:6]) <= 4096 for part in parts):
        raise UsageError(f"--{name} {text!r}: give whole numbers from 1 to 4096, such as 4,8,16")
    return tuple(sorted(set(map(int, parts))))


def _refuse_stray(which: str, own: dict[str, tuple[str | None, ...]]) -> None:
    """An option of another study is a mistake, not something to ignore."""
    for name, pairs in own.items():
        for flag, value in zip(pairs[::2], pairs[1::2], strict=True):
            if value is not None and name != which:
                raise UsageError(f"--{flag} belongs to `study {name}`; leave it out of `{which}`")
