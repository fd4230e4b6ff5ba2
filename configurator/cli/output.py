"""Where an answer goes and in which form: standard output or a file, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configurator.core.errors import UsageError, unknown
from configurator.files import write_whole

if TYPE_CHECKING:
    from configurator.render.document import Document

__all__ = ["FORMATS", "check_writable", "deliver", "form", "write_whole"]

FORMATS = ("terminal", "markdown", "json", "html")
_SUFFIXES = {".md": "markdown", ".json": "json", ".html": "html", ".htm": "html"}


def form(format: str | None, output: str | None) -> str:
    """The format to use: the one asked for, else by the file's suffix, else ``terminal``.

    Raises ``UsageError`` for an unknown format or an output that cannot be a file, so that a
    command can refuse before it works.
    """
    if output is not None:
        if not output.strip():
            raise UsageError("output '' is empty; name a file")
        path = Path(output)
        if path.is_dir():
            raise UsageError(f"output {output!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise UsageError(f"output {output!r} is in a folder that does not exist; make it first")
    if format is None:
        return _SUFFIXES.get(Path(output).suffix.lower(), "terminal") if output else "terminal"
    name = format.strip().lower()
    name = {"md": "markdown", "text": "terminal"}.get(name, name)
    if name not in FORMATS:
        raise unknown("format", format, FORMATS, f"use {', '.join(FORMATS)}")
    return name


def check_writable(name: str, path: Path) -> None:
    """Raise ``UsageError`` where no file can be made in ``path``, a folder, or beside it, a file.

    For commands that work long before they write. ``name`` is the option that gave the path.
    """
    import tempfile

    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise UsageError(f"{name} {str(path)!r}: cannot write there (a link that leads to itself)")
    if real.exists() and not (real.is_dir() or real.is_file()):
        return  # a pipe or a device is written to as it is
    folder = real if real.is_dir() else real.parent
    try:
        handle, probe = tempfile.mkstemp(prefix=".mha-", suffix=".partial", dir=folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{name} {str(path)!r}: cannot write there ({reason})") from None
    os.close(handle)
    os.unlink(probe)


def deliver(value: Any, document: Callable[[], Document], format: str, output: str | None) -> None:
    """Print the answer, or write it to ``output``. ``document`` is called for all but JSON."""
    if format == "terminal" and output is None and sys.stdout.isatty():
        from configurator.render.terminal import show

        show(document())
        return
    text = _text(value, document, format)
    if output is None:
        sys.stdout.write(text)
    else:
        write_whole(Path(output), text)
        print(f"wrote {output}", file=sys.stderr)


def _text(value: Any, document: Callable[[], Document], format: str) -> str:
    if format == "json":
        from configurator.render.json import to_json

        return to_json(value) + "\n"
    if format == "markdown":
        from configurator.render.markdown import to_markdown

        return to_markdown(document())
    if format == "html":
        from configurator.render.html import to_html

        return to_html(document())
    from configurator.render.terminal import to_text

    return to_text(document())
