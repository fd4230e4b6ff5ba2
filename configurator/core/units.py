"""Sizes as people type them, parsed to exact numbers, and printed back with honest units.

Contexts are powers of two in practice, so ``k`` and ``M`` after a token count mean 1,024 and
1,048,576 in either case; parameter counts use powers of ten. A byte suffix says itself which
one it is: ``GB`` is 10^9, ``GiB`` is 2^30. ``Gb`` is refused, since it may mean bits.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from configurator.core.errors import UsageError, show

# A whole number, a real or a truth, or a numpy column of them. Type checkers see Any: a union of
# the two would have to be taken apart at every use, and one formula is meant to serve both.
Count: TypeAlias = Any
Real: TypeAlias = Any
Truth: TypeAlias = Any

__all__ = [
    "many",
    "Count",
    "Real",
    "Truth",
    "format_bytes",
    "format_count",
    "format_seconds",
    "parse_bandwidth",
    "parse_bytes",
    "parse_flops",
    "parse_params",
    "parse_seconds",
    "parse_tokens",
]

_NUMBER = re.compile(r"\s*(\d+(?:_\d+)*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z/]*)\s*")
_LARGEST = Decimal(10) ** 18
_PARAMS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_TOKENS = {"": 1, "k": 2**10, "m": 2**20}
_BYTES = {"B": 1, "": 1}
for _i, _letter in enumerate("KMGTP", start=1):
    _BYTES[f"{_letter}B"] = 10 ** (3 * _i)
    _BYTES[f"{_letter}iB"] = 2 ** (10 * _i)
_BYTES["kB"] = 10**3
_SECONDS = {"": 1, "s": 1, "ms": Decimal("0.001"), "min": 60, "m": 60, "h": 3600}


def _split(text: object, what: str, allowed: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(str(text)) if len(str(text)) <= 40 else None
    if match is None:
        raise UsageError(f"{what} {str(text)[:40]!r} is not a size; write {allowed}")
    try:
        number = Decimal(match[1].replace("_", ""))
    except InvalidOperation:  # pragma: no cover - the pattern admits decimals only
        raise UsageError(f"{what} {text!r} is not a size; write {allowed}") from None
    return number, match[2]


def _scaled(
    text: object, what: str, allowed: str, units: dict[str, Any], fold: bool = False
) -> Decimal:
    number, unit = _split(_plain(text, what, allowed), what, allowed)
    if fold:
        unit = unit.lower()
    if unit not in units:
        raise UsageError(f"{what} {str(text)[:40]!r} has an unknown unit; write {allowed}")
    value: Decimal = number * units[unit]
    if not value.is_finite() or value > _LARGEST:
        raise UsageError(f"{what} {str(text)[:40]!r} is beyond 10^18; write {allowed}")
    return value


def _whole(value: Decimal, text: object, what: str, allowed: str) -> int:
    if value != value.to_integral_value():
        raise UsageError(
            f"{what} {str(text)[:40]!r} is not a whole number ({value.normalize():f}); "
            f"write {allowed}"
        )
    if value <= 0:
        raise UsageError(f"{what} {str(text)[:40]!r} must be above zero; write {allowed}")
    return int(value)


def parse_params(text: str | int | float, what: str = "params") -> int:
    """A parameter count: ``7B``, ``350M``, ``1.3e9``. K, M, B, T are powers of ten in either case.

    >>> parse_params("0.5B")
    500000000
    """
    allowed = "a count such as 350M, 7B or 1.3e9"
    return _whole(_scaled(text, what, allowed, _PARAMS, fold=True), text, what, allowed)


def parse_tokens(text: str | int | float, what: str = "context") -> int:
    """A token count: ``32k`` = ``32K`` = 32,768; ``1M`` = 1,048,576; ``131_072`` as it stands.

    >>> parse_tokens("1.5k")
    1536
    """
    allowed = "whole tokens such as 8192, 32k (32,768) or 1M (1,048,576)"
    return _whole(_scaled(text, what, allowed, _TOKENS, fold=True), text, what, allowed)


def parse_bytes(text: str | int | float, what: str = "memory") -> int:
    """A memory size: ``80GB`` is 80 x 10^9 bytes, ``80GiB`` is 80 x 2^30. Parts of a byte are cut.

    >>> parse_bytes("24 GiB")
    25769803776
    """
    allowed = "bytes such as 24GiB (2^30) or 24GB (10^9)"
    return _whole(_scaled(text, what, allowed, _BYTES) // 1, text, what, allowed)


def parse_bandwidth(text: str | int | float, what: str = "bandwidth") -> float:
    """Bytes per second: ``1000GB/s``, ``3.35TB/s``; a bare number is GB/s as vendors print it."""
    allowed = "a rate such as 1000GB/s or 3.35TB/s"
    units = {f"{unit}/s": factor for unit, factor in _BYTES.items() if unit} | {"": 10**9}
    value = float(_scaled(text, what, allowed, units))
    if value <= 0:
        raise UsageError(f"{what} {text!r} must be above zero; write {allowed}")
    return value


def parse_flops(text: str | int | float, what: str = "tflops") -> float:
    """FLOP per second from dense TFLOP/s: ``165`` or ``165TFLOPS``."""
    allowed = "dense TFLOP/s such as 165"
    units = {"": 10**12, "tflops": 10**12, "tflop/s": 10**12, "gflops": 10**9, "pflops": 10**15}
    value = float(_scaled(text, what, allowed, units, fold=True))
    if value <= 0:
        raise UsageError(f"{what} {text!r} must be above zero; write {allowed}")
    return value


def parse_seconds(text: str | int | float, what: str = "budget") -> float:
    """A duration: ``60s``, ``2min``, ``1h``; a bare number is seconds."""
    allowed = "a duration such as 60s or 2min"
    value = float(_scaled(text, what, allowed, _SECONDS, fold=True))
    if value <= 0:
        raise UsageError(f"{what} {text!r} must be above zero; write {allowed}")
    return value


def _plain(text: object, what: str, allowed: str) -> str:
    if isinstance(text, bool):
        return "true" if text else "false"
    if isinstance(text, int) and abs(text) > _LARGEST:  # its digits may be too many to print
        raise UsageError(f"{what} {show(text)} is beyond 10^18; write {allowed}")
    if isinstance(text, float):
        if not math.isfinite(text):
            return str(text)
        return f"{Decimal(repr(text)):f}"
    return str(text)


def format_count(value: int | float) -> str:
    """A parameter count as people say it: 6.74B, 124M, 1.03T."""
    number = float(value)
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= size * 0.9995:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def format_bytes(value: int | float) -> str:
    """Bytes divided by powers of 1,024 and labelled so: 4 GiB, 384 KiB."""
    number = float(value)
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(number) >= size:
            scaled = number / size
            return f"{scaled:.0f} {unit}" if scaled == int(scaled) else f"{scaled:.2f} {unit}"
    return f"{number:.0f} B"


def format_seconds(value: float | None) -> str:
    """Seconds with three figures and the unit that fits: 4.1 ms, 860 us."""
    if value is None or not math.isfinite(value):
        return "unknown"
    if value >= 999.5:  # three figures would turn to 1e+03
        return f"{value:,.0f} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size * 0.9995:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def many(number: Count, one: str) -> str:
    """``1 rank``, ``1,024 sequences``."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
