"""The command line: parse, call, print. Exit codes and messages are decided here.

0 done, 1 the answer is no, 2 the question was wrong, 3 something is missing (an extra, a
device), 130 interrupted, 70 a defect of this program. Results go to stdout, the rest to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from configurator.cli.app import Commands
from configurator.core.errors import MissingError, MissingExtra, UsageError, one_line

__all__ = ["main"]

_EXTRAS = {"torch": "bench", "matplotlib": "plots", "ray": "cluster", "transformers": "dev",
           "scipy": "dev"}  # fmt: skip
_CLICK_ERROR = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never raises but for ``SystemExit``."""
    given = list(sys.argv[1:] if args is None else args)
    # Looking for pydantic's plugins reads the metadata of every installed distribution.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _prepare_streams()
    try:
        code = _run(given or ["--help"])
    except BrokenPipeError:
        code = 0
    except KeyboardInterrupt:
        code = _say("interrupted", 130)
    return _flushed(code)


def _prepare_streams() -> None:
    """Closed streams swallow what is written; a letter that a terminal lacks becomes ``?``."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell: >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _flushed(code: int) -> int:
    """Write out what is buffered, so that Python has nothing left to fail on at its exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        return _say(f"error: output: {error.strerror or error}", 2)
    return code


def _discard_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: list[str]) -> int:
    try:
        result = _group().main(args, prog_name=_program(), standalone_mode=False)
    except UsageError as error:
        return _say(f"error: {error}", 2)
    except MissingError as error:
        return _say(f"error: {error}", 3)
    except typer.Abort:
        return _say("interrupted", 130)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _say(one_line(f"error: {error.filename or 'output'}: {error.strerror or error}"), 2)
    except Exception as error:
        return _unexpected(error)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _unexpected(error: Exception) -> int:
    if isinstance(error, _CLICK_ERROR):
        text = one_line(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        ctx = getattr(error, "ctx", None)
        path = ctx.command_path if ctx else _program()
        return _say(f"error: {text}; see {path} --help", 2)
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        if package in _EXTRAS:
            return _say(f"error: {MissingExtra(_EXTRAS[package], package)}", 3)
    if os.environ.get("MHA_CONFIGURATOR_DEBUG"):
        import traceback

        traceback.print_exception(error)
    kind = type(error).__name__
    text = one_line(error, 300)
    hint = "please report it; MHA_CONFIGURATOR_DEBUG=1 shows the traceback"
    return _say(f"internal error ({kind}: {text}): {hint}", 70)


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _program() -> str:
    name = Path(sys.argv[0]).name
    return name if name in ("mha", "mha-configurator") else "mha-configurator"


def _show_version(value: bool) -> None:
    if value:
        from configurator import __version__

        print(f"mha-configurator {__version__}")
        raise typer.Exit


def _group() -> Any:
    app = typer.Typer(
        cls=Commands,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        subcommand_metavar="COMMAND ...",
        options_metavar="",
        epilog="Sizes: 7B, 32k (k = 1,024 for tokens), 80GiB (2^30) or 80GB (10^9). "
        "Exit codes: 0 done, 1 the answer is no, 2 the question was wrong, "
        "3 something is missing.",
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option(
                "--version", "-V", callback=_show_version, is_eager=True, help="Print the version."
            ),
        ] = False,
    ) -> None:
        """Recommend a transformer's attention geometry, with its reasons, and measure it.

        \b
        Start with:
          mha-configurator recommend --params 7B --context 32k --target h100-sxm
        """

    return get_command(app)
