"""The few operations that differ between a number and a column, written once for both."""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.units import Count, Real, Truth

__all__ = [
    "as_float",
    "ceil_div",
    "given",
    "is_column",
    "maximum",
    "minimum",
    "plus",
    "where",
]


def is_column(value: Any) -> bool:
    """Whether ``value`` is a numpy column rather than one number."""
    return isinstance(value, np.ndarray)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, element by element where either is a column."""
    if is_column(a) or is_column(b):
        return np.maximum(a, b)
    return max(a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, element by element where either is a column."""
    if is_column(a) or is_column(b):
        return np.minimum(a, b)
    return min(a, b)


def where(condition: Truth, yes: Any, no: Any) -> Any:
    """``yes`` where ``condition`` holds, else ``no``."""
    if is_column(condition) or is_column(yes) or is_column(no):
        return np.where(condition, yes, no)
    return yes if condition else no


def ceil_div(a: Count, b: Count) -> Count:
    """Whole-number division rounded up; slow on columns, so a divisor of 1 is not divided by."""
    return a if isinstance(b, int) and b == 1 else -(-a // b)


def plus(a: Any, b: Any) -> Any:
    """``a + b``, without a pass over a column where the other is a plain 0."""
    if not is_column(b) and b == 0:
        return a
    return b if not is_column(a) and a == 0 else a + b


def given(value: Count, default: Count) -> Count:
    """``value``, and where it is 0 ``default``."""
    if is_column(value):
        return value + default * (value == 0)
    return value or default


def as_float(value: Count) -> Real:
    """A count as float64: products of large int64 columns would overflow silently."""
    return value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)
