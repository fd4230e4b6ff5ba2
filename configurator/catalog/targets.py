"""Deployment targets by name, by short alias, times a count, from a file, or from a few numbers.

``host`` is not resolved here: it is measured, not looked up, and whoever knows the host's
profile asks it before this catalog.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from configurator.catalog.classes import memory_share
from configurator.catalog.devices import NODE_DEVICES, build, figures
from configurator.catalog.store import load, read_toml
from configurator.core.case import Device
from configurator.core.errors import UsageError, show, unknown
from configurator.core.units import parse_bandwidth, parse_bytes, parse_flops

__all__ = ["aliases", "custom", "describe", "device", "devices", "names"]

_TIMES = re.compile(r"(?:(\d{1,6})x)?(\d{1,6})x(.+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_MOST_DEVICES = 100_000
_MOST_BYTES = 1_000_000
_HINT = "`targets` lists them; --memory and --bandwidth describe one without a name"


def device(name: str, count: int | None = None) -> Device:
    """The target called ``name``: ``h100-sxm``, ``8xh200-sxm``, ``2x8xh200-sxm``, ``my.toml``.

    ``NxM x name`` is N machines of M devices; otherwise a machine holds 8 devices, or what the
    device's file says. ``count`` multiplies a name that carries no number of its own.

    Raises:
        UsageError: an unknown name (with the nearest ones), a count out of range or stated
            twice, a file that cannot be read or holds a wrong value.
    """
    text = str(name).strip()
    machines, total, base = _split(text)
    if count is not None and total and count != total:
        raise UsageError(f"target {text!r} says {total} devices and count says {count}; give one")
    found, table, _ = _entry(base)
    if total is None:
        total = 1 if count is None else count
    return _times(found, table, total, machines)


def devices() -> list[Device]:
    """Every device of the catalog, count 1, by kind, vendor and year."""
    found = [build(name, table, where) for name, (table, where) in _tables().items()]
    return sorted(found, key=lambda d: (d.kind, d.vendor, d.year, d.name))


def names() -> list[str]:
    """The catalog's full names."""
    return sorted(_tables())


@cache
def aliases() -> Mapping[str, str]:
    """Short names and the one full name that each means."""
    found: dict[str, str] = {}
    for name, (table, where) in _tables().items():
        for alias in table.get("aliases", ()):
            if alias in found or alias in _tables():
                other = found.get(alias, alias)
                raise UsageError(f"{where}: alias {alias!r} already means {other!r}")
            found[alias] = name
    return found


def describe(name: str) -> dict[str, Any]:
    """A target in words: its figures with unit, basis and whether each was verified; sources.

    Takes what :func:`device` takes, a count included.
    """
    found = device(name)
    _, table, where = _entry(_split(str(name).strip())[2])
    share = memory_share(found.kind, bool(table.get("unified_memory", False)))
    return {
        "name": found.name,
        "title": found.title,
        "aliases": sorted(alias for alias, full in aliases().items() if full == found.name),
        "vendor": found.vendor,
        "kind": found.kind,
        "architecture": found.architecture,
        "year": found.year,
        "memory_type": table.get("memory_type", ""),
        "unified_memory": bool(table.get("unified_memory", False)),
        "interconnect": table.get("interconnect", ""),
        "count": found.count,
        "nodes": found.nodes,
        "verified": found.verified,
        "figures": figures(found, table),
        "memory_share_source": share.source,
        "sources": list(found.sources),
        "note": found.note,
        "file": where,
    }


def custom(
    *,
    memory: str | int | float | None = None,
    bandwidth: str | int | float | None = None,
    tflops: str | int | float | None = None,
    base: Device | str | None = None,
    count: int | None = None,
) -> Device:
    """A target from a few numbers as people type them, or a named one with some replaced.

    Args:
        memory: of one device, such as ``24GiB``.
        bandwidth: such as ``1000GB/s``.
        tflops: dense 16-bit rate; where it replaces a named device's, its other rates go too.
        base: the device to start from; without it memory and bandwidth are needed.
        count: devices, when ``base`` is not a ready ``Device``.

    Raises:
        UsageError: a value that is no size, or one that is missing.
    """
    given: dict[str, Any] = {}
    if memory is not None:
        given["memory_bytes"] = parse_bytes(memory, "memory")
    if bandwidth is not None:
        given["bandwidth_bytes_per_s"] = parse_bandwidth(bandwidth, "bandwidth")
    if tflops is not None:
        rate = parse_flops(tflops, "tflops")
        given["flops_per_s"] = {"fp16": rate, "bf16": rate}
    if base is not None:
        start = device(base, count) if isinstance(base, str) else base
        if not given:
            return start
        said = ", ".join(k for k, v in _said(memory, bandwidth, tflops).items() if v is not None)
        sources = (*start.sources, f"given on the command line: {said}")
        return replace(start, **given, title=f"{start.title}, {said} as given", sources=sources)
    for what, value in (("memory", memory), ("bandwidth", bandwidth)):
        if value is None:
            raise UsageError(
                f"a target without a name needs its {what}; "
                "write --memory 24GiB --bandwidth 1000GB/s and, if known, --tflops 165"
            )
    share = memory_share("other")
    return _times(
        Device(
            name="custom",
            title="custom device",
            usable_share=share.usable_share,
            overhead_bytes=memory_share("consumer-gpu").overhead_bytes,
            verified=False,
            sources=("given on the command line",),
            **given,
        ),
        {},
        1 if count is None else count,
        0,
    )


def _said(memory: object, bandwidth: object, tflops: object) -> dict[str, object]:
    return {"memory": memory, "bandwidth": bandwidth, "tflops": tflops}


@cache
def _tables() -> dict[str, tuple[dict[str, Any], str]]:
    """Every table of the device files with the file it stands in."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for stem, document in load("devices").items():
        for name, table in document.items():
            where = f"devices/{stem}.toml [{name}]"
            if not isinstance(table, dict):
                raise UsageError(f"{where} is not a table; each device is a table of its own")
            if name in found:
                raise UsageError(f"{where}: {name} also stands in {found[name][1]}")
            found[name] = (table, where)
    return found


def _split(text: str) -> tuple[int, int | None, str]:
    """Machines (0: not said), devices in all (None: not said), and the name or file itself."""
    match = _TIMES.fullmatch(text)
    if match is None or (_is_path(text) and Path(text).expanduser().exists()):
        return 0, None, text
    return int(match[1] or 0), int(match[2]) * int(match[1] or 1), match[3].strip()


def _entry(name: str) -> tuple[Device, Mapping[str, Any], str]:
    """One device, its table and where that stands."""
    if _is_path(name):
        return _from_file(name)
    folded = re.sub(r"[\s_]+", "-", name.casefold())
    full = aliases().get(folded, folded)
    if full not in _tables():
        raise _not_found(name, folded)
    table, where = _tables()[full]
    return build(full, table, where), table, where


def _not_found(name: str, folded: str) -> UsageError:
    if not folded:
        return UsageError(f"target is empty; write a name such as h100-sxm; {_HINT}")
    shortest: dict[str, str] = {}
    for short, full in [*aliases().items(), *((n, n) for n in _tables())]:
        if short.startswith(f"{folded}-"):
            shortest[full] = min(short, shortest.get(full, short), key=len)
    if len(shortest) > 1:
        several = ", ".join(sorted(shortest.values()))
        return UsageError(f"target {name[:80]!r} may mean {several}; name one of them")
    return unknown("target", name, [*_tables(), *aliases()], _HINT)


def _times(found: Device, table: Mapping[str, Any], count: int, machines: int) -> Device:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_DEVICES:
        raise UsageError(
            f"device count {show(count)} must be a whole number from 1 to {_MOST_DEVICES}"
        )
    nodes = machines or -(-count // int(table.get("node_devices", NODE_DEVICES)))
    return replace(found, count=count, nodes=nodes)


def _is_path(text: str) -> bool:
    return text.endswith(".toml") or os.sep in text or "/" in text


def _from_file(text: str) -> tuple[Device, Mapping[str, Any], str]:
    """A user's target: the keys of a device at the top level, or in one ``[name]`` table."""
    path = Path(text).expanduser()
    where = f"target file {text[:200]}"
    try:
        info = path.stat()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{where} cannot be read ({why}); {_HINT}") from None
    if not stat.S_ISREG(info.st_mode):
        raise UsageError(f"{where} is not a regular file; give a TOML file")
    if info.st_size > _MOST_BYTES:
        raise UsageError(f"{where} has {info.st_size:,} bytes; a target file has at most 1,000,000")
    table = dict(read_toml(path))
    name = table.pop("name", path.stem)
    if len(table) == 1 and isinstance(next(iter(table.values())), dict):
        ((name, table),) = table.items()  # an entry copied from the catalog
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{where}: name is {str(name)[:60]!r}; use letters, digits, '.', '_', '+' and '-'"
        )
    found = build(name, table, where)
    return replace(found, sources=found.sources or (where,)), table, where
