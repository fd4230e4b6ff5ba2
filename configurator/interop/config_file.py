"""Read a model's ``config.json`` from a file, a folder or standard input, whatever is in it.

This is one of two doors for untrusted input. A file is bounded in size before it is parsed, and
everything that JSON lets through but a configuration cannot mean (a list, a key given twice) is
refused with one line that says what was found and what to give instead. Infinity is let through,
since published files hold it as a limit; where a size is wanted it is refused.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from configurator.core.errors import UsageError, show

__all__ = ["MAX_BYTES", "MAX_DEPTH", "parse_config", "read_config"]

# The largest published files, per-layer quantisation lists included, take 2 MB.
MAX_BYTES = 8 * 2**20
MAX_DEPTH = 64
_STDIN = "-"


def read_config(source: str | os.PathLike[str]) -> dict[str, Any]:
    """The configuration in ``source``: a file, a folder that holds ``config.json``, or ``-``.

    Raises ``UsageError`` where there is no such file, it cannot be read, it is larger than
    ``MAX_BYTES``, or it does not hold one JSON object with distinct keys.
    """
    name = os.fspath(source)
    if name == _STDIN:
        return parse_config(_bounded(sys.stdin.buffer, "standard input"), "standard input")
    if "\0" in name:
        raise UsageError(f"file name {show(name)} holds a zero byte; give a path")
    path = Path(name)
    try:
        if path.is_dir():
            path = path / "config.json"
            if not path.is_file():
                raise UsageError(
                    f"folder {show(name, 200)} holds no config.json; give the file itself"
                )
        with path.open("rb") as file:
            data = _bounded(file, show(str(path), 200))
    except FileNotFoundError:
        raise UsageError(
            f"no file {show(name, 200)}; give a config.json, a folder that holds one, or - for "
            f"standard input"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot read {show(name, 200)}: {error.strerror or error}; give a readable file"
        ) from None
    return parse_config(data, show(str(path), 200))


def _bounded(file: BinaryIO, name: str) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{name} is larger than {MAX_BYTES // 2**20} MiB; a model configuration is a few "
            f"kilobytes: give its config.json"
        )
    return data


def parse_config(data: bytes | str, name: str = "the input") -> dict[str, Any]:
    """The JSON object in ``data``; raises ``UsageError`` for anything else, naming ``name``."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text; give a JSON config.json") from None
    if not text.strip():
        raise UsageError(f"{name} is empty; give a JSON config.json")
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name} is not JSON: {error.msg} at line {error.lineno} column {error.colno}; "
            f"give a JSON config.json"
        ) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply to be a configuration") from None
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    except ValueError:  # a whole number of more digits than Python converts
        raise UsageError(f"{name} holds a number too long to be meant") from None
    if not isinstance(value, dict):
        raise UsageError(
            f"{name} holds {_kind(value)}, not a JSON object; give a model's config.json"
        )
    _limit_depth(value, name)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UsageError(f"key {show(key)} is given twice; keep one of them")
        found[key] = value
    return found


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else "a number"


def _limit_depth(value: dict[str, Any], name: str) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise UsageError(f"{name} is nested over {MAX_DEPTH} levels deep; give a model's config.json")
