"""Print the agent skill, or install it where agents look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "skill_text"]

_NAME = "mha-configurator"
_FILE = f"skill-{_NAME}.md"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


def skill_text() -> str:
    """The skill, from the installed wheel or, in a clone, from ``outputs/``."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / _FILE, package.parent / "outputs" / _FILE):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    from configurator.core.errors import MissingError

    raise MissingError(f"{_FILE} is not in {package}; install {_NAME} again")


@app.callback(invoke_without_command=True)
def skill(ctx: typer.Context) -> None:
    """Print the agent skill: when to ask, which command to run, how to read the answer.

    `skill install` writes it where agents look.
    """
    if ctx.invoked_subcommand is None:
        print(skill_text(), end="")


@app.command()
def install(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DIR",
            help="A folder of skills; the file becomes DIR/mha-configurator/SKILL.md.",
        ),
    ] = "~/.claude/skills",
    force: Annotated[
        bool, typer.Option("--force", help="Replace a different file that is already there.")
    ] = False,
) -> None:
    """Write the skill where agents look, whole or not at all."""
    from configurator.cli.output import write_whole
    from configurator.core.errors import UsageError

    if not to.strip():
        raise UsageError("to '' is empty; name a folder of skills")
    folder = Path(to).expanduser()
    if folder.name != _NAME:
        folder /= _NAME
    file, text = folder / "SKILL.md", skill_text()
    if file.exists() or file.is_symlink():
        same = file.is_file() and file.read_bytes() == text.encode()
        if same:
            print(f"{file} is up to date")
            return
        if not force:
            raise UsageError(f"{file} is there already and differs; add --force to replace it")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    print(f"wrote {file}")
