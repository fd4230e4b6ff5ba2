"""Turns one table of a device file into a ``Device`` in SI units, and into words about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from configurator.catalog.classes import memory_share
from configurator.catalog.coefficients import class_coefficients
from configurator.catalog.derive import derived_units
from configurator.catalog.fields import FIELDS, FIGURES, RATES, checked
from configurator.core.case import Device
from configurator.core.errors import UsageError

__all__ = ["NODE_DEVICES", "build", "figures"]

NODE_DEVICES = 8  # devices in one machine where the file does not say


def build(name: str, table: Mapping[str, Any], where: str) -> Device:
    """One device, count 1, from the human units of its table.

    Raises:
        UsageError: a key that is unknown, missing or out of range, with ``where`` it stands.
    """
    checked(table, where)
    memory = _memory_bytes(table, where)
    if "bandwidth_gb_s" not in table:
        raise UsageError(f"{where}: bandwidth_gb_s is missing; give the memory bandwidth in GB/s")
    kind = str(table.get("kind", "other"))
    share = memory_share(kind, bool(table.get("unified_memory", False)))
    overhead = table.get("overhead_gib")
    return Device(
        name=name,
        title=str(table.get("title", name)),
        vendor=str(table.get("vendor", "")),
        kind=kind,
        memory_bytes=memory,
        bandwidth_bytes_per_s=table["bandwidth_gb_s"] * 1e9,
        flops_per_s={dtype: table[key] * 1e12 for dtype, key in RATES.items() if key in table},
        interconnect_bytes_per_s=table.get("interconnect_gb_s", 0) * 1e9,
        n_units=_units(table, kind),
        cache_bytes=round(table.get("last_level_cache_mib", 0) * 2**20),
        clock_hz=table.get("boost_clock_ghz", 0) * 1e9,
        architecture=str(table.get("architecture", "")),
        usable_share=float(table.get("usable_share", share.usable_share)),
        overhead_bytes=share.overhead_bytes if overhead is None else round(overhead * 2**30),
        verified=bool(table.get("verified", False)),
        sources=tuple(table.get("sources", ())),
        note=str(table.get("note", "")),
        coefficients=class_coefficients(str(table.get("architecture", ""))),
        year=int(table.get("year", 0)),
    )


def _memory_bytes(table: Mapping[str, Any], where: str) -> int:
    """GiB and GB are told apart by the key; exactly one of them must be there."""
    if ("memory_gib" in table) == ("memory_gb" in table):
        raise UsageError(f"{where}: give memory_gib (2^30 bytes) or memory_gb (10^9), one of them")
    if "memory_gib" in table:
        return round(float(table["memory_gib"]) * 2**30)
    return round(float(table["memory_gb"]) * 1e9)


def _units(table: Mapping[str, Any], kind: str) -> int:
    return int(table.get("units", 0)) or derived_units(
        table.get("bf16_dense_tflops", 0),
        table.get("boost_clock_ghz", 0),
        str(table.get("architecture", "")),
        kind,
    )


def figures(device: Device, table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each figure of a device with its unit, its basis and whether it was read at a source.

    ``basis`` is ``source``, ``unverified`` (general knowledge, or worked out from figures that
    the note names), ``derived`` (by this program) or ``class`` (a default of its class).
    A device that is not verified and does not say which figures are at fault has none verified.
    """
    doubtful = set(table.get("unverified", ()))
    all_doubtful = not table.get("verified", False) and not doubtful
    found: dict[str, dict[str, Any]] = {}
    for key, field in FIGURES.items():
        if key in table:
            read = not all_doubtful and key not in doubtful
            found[key] = _figure(table[key], field.unit, "source" if read else "unverified")
    if device.n_units and "units" not in table:
        found["units"] = _figure(device.n_units, FIELDS["units"].unit, "derived")
    for key, value in (
        ("usable_share", device.usable_share),
        ("overhead_gib", device.overhead_bytes / 2**30),
    ):
        if key not in table:
            found[key] = _figure(round(value, 4), FIELDS[key].unit, "class")
    return found


def _figure(value: float, unit: str, basis: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "basis": basis, "verified": basis == "source"}
