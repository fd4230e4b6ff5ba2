"""Results as JSON: the field names are the keys, unknown figures are ``null``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["plain", "to_json"]


def plain(value: Any) -> Any:
    """``value`` as what JSON knows: dataclasses and mappings become objects, NaN becomes null.

    Figures keep ten digits: more are not known, and the last ones differ between processors.
    Keys keep the order in which they are declared. Raises ``TypeError`` for anything else.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a numpy scalar
        return plain(value.item())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_json(value: Any) -> str:
    """One JSON document, indented, without a trailing newline; the same for equal values."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
