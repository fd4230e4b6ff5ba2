"""The latency coefficients of a device's class, read from ``coefficients/*.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from configurator.catalog.store import load

__all__ = ["class_coefficients"]


@cache
def _values(stem: str) -> Mapping[str, float]:
    table = load("coefficients")[stem]
    base = _values(table["about"]["extends"]) if "extends" in table["about"] else {}
    return MappingProxyType({**base, **table["values"]})


@cache
def class_coefficients(architecture: str, kind: str) -> Mapping[str, float]:
    """The fitted coefficients that apply to an architecture; those of its class where untimed.

    A file says in ``about.applies`` how an architecture's name begins, and in ``about.kinds``
    (where present) which kinds of device it is for; ``extends`` names a file whose values it
    adds to. All that apply are merged, in the order of their names.
    """
    merged: dict[str, float] = {}
    for stem, table in sorted(load("coefficients").items()):
        about: Mapping[str, Any] = table["about"]
        kinds = about.get("kinds", [kind])
        if architecture.startswith(about["applies"]) and kind in kinds:
            merged |= _values(stem)
    return MappingProxyType(merged)
