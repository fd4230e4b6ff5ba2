"""Reads the catalog's TOML files, and keeps a compiled JSON copy so that starting is quick.

The copy lies in the user's cache folder, one file per section and per installation. It is used
only while the name, size and modification time of every TOML file are those it was made from,
and its checksum holds. Where it is missing, damaged or cannot be written, the TOML is read.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from configurator.core.errors import UsageError
from configurator.files import write_whole

__all__ = ["CATALOG", "cache_folder", "load", "read_toml"]

CATALOG = Path(__file__).resolve().parent
_FORMAT = 1


def load(section: str, *, root: Path = CATALOG) -> dict[str, dict[str, Any]]:
    """The parsed files of a section, by the file's stem: ``root/section/*.toml``.

    A section may also be one file, ``root/section.toml``.

    Raises:
        UsageError: a file that is not TOML, with its name and line.
        FileNotFoundError: no such section.
    """
    files = _files(section, root)
    stamp = [[p.name, s.st_size, s.st_mtime_ns] for p in files for s in (p.stat(),)]
    copy = _copy_path(section, root)
    found = _read_copy(copy, stamp)
    if found is None:
        found = {path.stem: read_toml(path) for path in files}
        _write_copy(copy, stamp, found)
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """One TOML file; any way in which it is not one is a ``UsageError`` of one line."""
    import tomllib  # only when there is no compiled copy

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # some editors mark it
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply to be a catalog file") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {str(error)[:160]}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def cache_folder() -> Path | None:
    """Where this user's caches belong on this platform; None where that cannot be told."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and os.path.isabs(given):
        return Path(given) / "mha-configurator"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
        return Path(base) / "mha-configurator" / "cache" if base else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return home / below / "mha-configurator"


def _files(section: str, root: Path) -> list[Path]:
    folder = root / section
    if folder.is_dir():
        return sorted(folder.glob("*.toml"))
    single = root / f"{section}.toml"
    if not single.is_file():
        raise FileNotFoundError(f"the catalog has no section {section!r} in {root}")
    return [single]


def _copy_path(section: str, root: Path) -> Path | None:
    folder = cache_folder()
    return folder and folder / f"catalog-{section}-{crc32(str(root).encode()):08x}.json"


def _read_copy(path: Path | None, stamp: list[list[Any]]) -> dict[str, dict[str, Any]] | None:
    if path is None:
        return None
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if json.loads(head) == {"format": _FORMAT, "crc32": crc32(body), "files": stamp}:
            found = json.loads(body)
            return found if isinstance(found, dict) else None
    except (OSError, ValueError, RecursionError):
        pass
    return None


def _write_copy(path: Path | None, stamp: list[list[Any]], found: dict[str, Any]) -> None:
    if path is None:
        return
    body = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    head = json.dumps({"format": _FORMAT, "crc32": crc32(body), "files": stamp}).encode()
    with suppress(OSError):  # a read-only or full disk costs speed, nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, head + b"\n" + body)
