"""Defaults of a class of device: usable memory, and the share of its peaks that it reaches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from configurator.catalog.store import load
from configurator.core.case import Device

__all__ = ["Efficiency", "MemoryShare", "efficiency", "memory_share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShare:
    """Share of memory that weights and cache may take, and what is held back inside it."""

    usable_share: float
    overhead_bytes: int
    judgement: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Share of peak bandwidth that decode reaches, share of dense peak that prefill reaches."""

    decode: float
    prefill: float
    judgement: bool
    source: str


@cache
def _classes() -> dict[str, Any]:
    return load("classes")["classes"]


@cache
def memory_share(kind: str, unified: bool = False) -> MemoryShare:
    """The default of a class; memory shared with the system gives less, on a phone least.

    An unknown class is treated as ``other``.
    """
    shares = _classes()["memory"]
    name = "unified" if unified and kind != "phone" else kind
    found = shares.get(name, shares["other"])
    return MemoryShare(
        usable_share=float(found["usable_share"]),
        overhead_bytes=round(found["overhead_gib"] * 2**30),
        judgement=bool(found["judgement"]),
        source=str(found["source"]),
    )


def efficiency(device: Device) -> Efficiency:
    """Decode and prefill efficiency of a device's class, its vendor's entry first."""
    return _efficiency(device.kind, device.vendor)


@cache
def _efficiency(kind: str, vendor: str) -> Efficiency:
    entries = _classes()["efficiency"]
    of_kind = [e for e in entries if e["kind"] == kind] or [
        e for e in entries if e["kind"] == "other"
    ]
    ranked = sorted(of_kind, key=lambda e: e.get("vendor") != vendor)
    found = next(e for e in ranked if e.get("vendor") in (vendor, None))
    return Efficiency(
        decode=float(found["decode"]),
        prefill=float(found["prefill"]),
        judgement=bool(found["judgement"]),
        source=str(found["source"]),
    )
