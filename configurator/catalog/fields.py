"""The keys of a device file: what each means, which values it admits, and how it is refused.

One table serves the catalog's own files and a user's target file, so both are equally strict. All
figures are those of one device. Needed are ``memory_gib`` (2^30 bytes) or ``memory_gb`` (10^9),
and ``bandwidth_gb_s``. Rates are dense, with FP32 accumulation where the vendor tells the two
apart; a rate that is left out is unknown or not supported, never zero. ``interconnect_gb_s`` is
one direction. ``units`` are streaming multiprocessors, compute units or cores, ``boost_clock_ghz``
is theirs. ``verified = true`` says that memory, bandwidth and a rate were read at the sources;
``unverified`` names the figures that were not: general knowledge, or worked out as ``note`` says.
``aliases`` are short names that mean this device alone; ``node_devices`` is how many one machine
holds (8 where not said). ``usable_share`` and ``overhead_gib`` replace those of the ``kind``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from configurator.core.errors import UsageError, nearest

__all__ = ["FIELDS", "FIGURES", "KINDS", "RATES", "Field", "checked"]

KINDS = (
    "datacenter-gpu", "consumer-gpu", "laptop", "edge", "phone", "tpu", "cpu-server", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """What one key admits: a ``number`` or ``whole`` one in a range, ``text``, ``flag``, ..."""

    form: str
    unit: str = ""
    low: float = 0.0
    high: float = 1e9
    may_be_low: bool = False


RATES = {
    "fp32": "fp32_dense_tflops",
    "fp16": "fp16_dense_tflops",
    "bf16": "bf16_dense_tflops",
    "fp8": "fp8_dense_tflops",
    "int8": "int8_dense_tops",
    "fp4": "fp4_dense_tflops",
}
_RATE = Field("number", "10^12 operations/s, dense")
FIGURES: dict[str, Field] = {
    "memory_gib": Field("number", "GiB", low=0.001, may_be_low=True),
    "memory_gb": Field("number", "GB", low=0.001, may_be_low=True),
    "bandwidth_gb_s": Field("number", "GB/s", low=0.001, may_be_low=True),
    **dict.fromkeys(RATES.values(), _RATE),
    "interconnect_gb_s": Field("number", "GB/s, one direction", may_be_low=True),
    "units": Field("whole", "SMs, compute units or cores"),
    "last_level_cache_mib": Field("number", "MiB"),
    "boost_clock_ghz": Field("number", "GHz", high=100),
    "tdp_w": Field("number", "W"),
    "usable_share": Field("number", "of memory", high=1.0),
    "overhead_gib": Field("number", "GiB", may_be_low=True),
}
FIELDS: dict[str, Field] = {
    "title": Field("text"),
    "aliases": Field("texts"),
    "vendor": Field("text"),
    "kind": Field("kind"),
    "architecture": Field("text"),
    "year": Field("whole", low=1970, high=2100),
    "memory_type": Field("text"),
    "unified_memory": Field("flag"),
    "interconnect": Field("text"),
    "node_devices": Field("whole", "devices in one machine", high=1e5),
    "verified": Field("flag"),
    "unverified": Field("texts"),
    "sources": Field("texts"),
    "note": Field("text"),
    **FIGURES,
}


def checked(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table itself when every key is known and every value is of its kind and range.

    Raises:
        UsageError: one line that names the file, the key and what the key admits.
    """
    for key, value in table.items():
        field = FIELDS.get(key)
        if field is None:
            close = nearest(key, FIELDS)
            hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(FIELDS)}"
            raise UsageError(f"{where}: unknown key {key[:60]!r}; {hint}")
        fault = _fault(field, value)
        if fault:
            raise UsageError(f"{where}: {key} is {str(value)[:60]!r}; {fault}")
    for key in table.get("unverified", ()):
        if key not in FIGURES:
            raise UsageError(f"{where}: unverified names {key[:60]!r}, which is not a figure's key")
    return table


def _fault(field: Field, value: Any) -> str:
    if field.form == "text":
        ok = isinstance(value, str) and 0 < len(value) <= 1000
        return "" if ok else "it must be text of 1 to 1,000 characters"
    if field.form == "kind":
        return "" if value in KINDS else f"it must be one of {', '.join(KINDS)}"
    if field.form == "flag":
        return "" if isinstance(value, bool) else "it must be true or false"
    if field.form == "texts":
        ok = isinstance(value, list) and all(isinstance(v, str) and v for v in value)
        return "" if ok else 'it must be a list of texts, such as ["a", "b"]'
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "it must be a number"
    if field.form == "whole" and not isinstance(value, int):
        return "it must be a whole number"
    if isinstance(value, float) and not math.isfinite(value):
        return "it must be finite"
    above = value >= field.low if field.may_be_low else value > field.low
    if not above or value > field.high:
        least = "at least" if field.may_be_low else "above"
        return f"it must be {least} {field.low:g} and at most {field.high:g} {field.unit}".rstrip()
    return ""
