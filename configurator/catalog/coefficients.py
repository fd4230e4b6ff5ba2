"""The latency coefficients of a device's class, read from ``coefficients/*.toml``.

A file's ``about.applies`` says how the names of its architectures begin (empty: all), and its
``values`` are the coefficients; ``about.extends`` names a file whose values it adds to. A file
may hold several classes instead, each with ``applies`` (a list) and ``values``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from configurator.catalog.store import load

__all__ = ["class_coefficients"]


@cache
def _values(stem: str) -> Mapping[str, float]:
    table = load("coefficients")[stem]
    base = _values(table["about"]["extends"]) if "extends" in table["about"] else {}
    return {**base, **table.get("values", {})}


@cache
def class_coefficients(architecture: str) -> Mapping[str, float]:
    """The coefficients for an architecture (``sm_90``, ``cdna3``); files merge by their names.

    An architecture that no file names gets what applies to all, and the core's priors beyond.
    """
    merged: dict[str, float] = {}
    for stem, table in sorted(load("coefficients").items()):
        if architecture.startswith(str(table["about"]["applies"])):
            merged |= _values(stem)
        for part in table.get("class", ()):
            if any(architecture.startswith(name) for name in part["applies"]):
                merged |= part["values"]
    return MappingProxyType(merged)
