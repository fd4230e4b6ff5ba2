"""The command line's frame: commands found in this folder, loaded when used, with plain help.

Help is plain text on purpose: it starts in a third of the time of a rich page and is the same
in a pipe. A command is a file here that defines a function of its own name (``check.py``:
``check``) or a ``typer.Typer`` called ``app``; the first line of the file is its summary.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from configurator.core.errors import unknown

__all__ = ["Command", "Commands", "commands"]

_FOLDER = Path(__file__).parent
_SUMMARY = re.compile(r'\A\s*"""(.+?)(?:"""|$)', re.MULTILINE)
_SECTIONS = {
    "Advice": ("recommend", "check", "compare", "audit", "export"),
    "Measure": ("bench", "calibrate", "probe", "study", "heads", "backtest", "merge"),
    "Look up": ("targets", "models", "rules", "skill"),
}


def commands() -> dict[str, str]:
    """Command names and their one-line summaries, read from the files without importing them."""
    found = {}
    for file in sorted(_FOLDER.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        if re.search(rf"^(def {file.stem}\(|app = typer\.Typer\()", text, re.MULTILINE):
            summary = _SUMMARY.match(text)
            found[file.stem.replace("_", "-")] = summary[1].strip() if summary else ""
    return found


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        if getattr(param, "hidden", False):
            continue
        panel = getattr(param, "rich_help_panel", None) or "Options"
        if param.param_type_name == "argument":
            name, panel = param.metavar or param.name.upper(), "Arguments"
        else:
            name = ", ".join(sorted(param.opts, key=len))
            name += "".join(f" / {opt}" for opt in param.secondary_opts)
            if not param.is_flag:
                name += f" {param.metavar or param.name.upper()}"
        text = getattr(param, "help", "") or ""
        shown = param.default
        if shown not in (None, False, True, "", [], ()) and "default" not in text:
            text = f"{text} (default {shown})"
        panels.setdefault(panel, []).append((name, text))
    for last in ("Answer", "Options"):  # what every command has comes last
        if last in panels:
            panels[last] = panels.pop(last)
    for panel, rows in panels.items():
        with formatter.section(panel):
            formatter.write_dl(rows, col_max=34)


class Command(TyperCommand):
    """A command whose help lists its options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, by the panel each names."""
        _write_options(self, ctx, formatter)


class Commands(TyperGroup):
    """The commands of this folder; a module is imported when its command runs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in alphabetical order."""
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import one command's module and build the command; ``None`` where there is none."""
        if cmd_name not in commands():
            return None
        stem = cmd_name.replace("-", "_")
        module = import_module(f"configurator.cli.{stem}")
        nested = getattr(module, "app", None)
        if isinstance(nested, typer.Typer):
            nested.rich_markup_mode = None
            built = get_command(nested)
        else:
            single = typer.Typer(rich_markup_mode=None, add_completion=False)
            single.command(cmd_name, cls=Command)(getattr(module, stem))
            built = get_command(single)
        built.name = cmd_name
        return built

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that was named; an unknown one is answered with the nearest names."""
        name = str(args[0])
        if name.startswith("-") or name in commands():
            return super().resolve_command(ctx, args)
        raise unknown("command", name, commands(), "mha-configurator --help lists them")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands by what they are for, then the global options."""
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Names and summaries, without importing a command."""
        left = commands()
        for section, names in _SECTIONS.items():
            rows = [(name, left.pop(name)) for name in names if name in left]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)
        if left:
            with formatter.section("More"):
                formatter.write_dl(sorted(left.items()))

    def invoke(self, ctx: Any) -> Any:
        """Run; a closed pipe ends quietly and Ctrl-C ends with 130, what is finished kept."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
