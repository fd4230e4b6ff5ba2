"""A grid of cases cut along its first axis, so that what is computed on it stays in the cache.

A grid is a case whose fields are columns that broadcast: all of one length, or geometries as
``(n, 1)`` beside workloads as ``(1, m)``. A whole column of a long grid leaves the processor's
cache before the next step reads it; a piece does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

__all__ = ["by_pieces", "pieces", "shape_of"]

# Given back at once. A C library hands freed memory to the system above a threshold that grows
# with the largest block it saw freed (glibc: up to 32 MiB); each small column after that would
# be fresh pages again, which take longer than the arithmetic on them.
_KEPT_BYTES = 24 << 20

_known: dict[type, tuple[str, ...]] = {}


def shape_of(value: Any) -> tuple[int, ...]:
    """The common shape of the columns in a case; ``()`` where all are numbers."""
    return np.broadcast_shapes(*(column.shape for column in _columns(value)))


def pieces(case: Any, most: int) -> Iterator[tuple[Any, Any]]:
    """Rows of the first axis with the case cut to them, of about ``most`` elements each."""
    shape = shape_of(case)
    each = max(1, most // max(math.prod(shape[1:]), 1))
    if not shape or shape[0] <= each:
        yield ..., case
        return
    np.empty(_KEPT_BYTES, np.uint8)
    cut = _cutter(case, shape)
    if cut is None:
        raise ValueError("a grid without columns along its first axis")
    for start in range(0, shape[0], each):
        rows = slice(start, start + each)
        yield rows, cut(rows)


def by_pieces(case: Any, most: int, of: Callable[[Any], Any]) -> Any:
    """``of(case)`` in float64, piece by piece; ``of`` gives one figure for every element."""
    found: np.ndarray | None = None
    for rows, piece in pieces(case, most):
        if rows is ...:
            return of(piece)
        if found is None:
            found = np.empty(shape_of(case))
        found[rows] = of(piece)
    return found


def _names(value: object) -> tuple[str, ...]:
    """The fields of a dataclass; none of anything else. Asked often, so kept by type."""
    kind = type(value)
    if kind not in _known:
        _known[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
    return _known[kind]


def _columns(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _columns(item)
    else:
        for name in _names(value):
            yield from _columns(getattr(value, name))


def _cutter(value: Any, shape: tuple[int, ...]) -> Callable[[slice], Any] | None:
    """What cuts ``value`` to rows of the first axis; None where nothing in it runs along that."""
    if isinstance(value, np.ndarray):
        along = value.ndim == len(shape) and len(value) == shape[0]
        return value.__getitem__ if along else None
    if isinstance(value, tuple):
        items = [(item, _cutter(item, shape)) for item in value]
        if not any(cut for _, cut in items):
            return None
        return lambda rows: tuple(cut(rows) if cut else item for item, cut in items)
    cuts = {name: _cutter(getattr(value, name), shape) for name in _names(value)}
    changed = {name: cut for name, cut in cuts.items() if cut}
    if not changed:
        return None
    return lambda rows: replace(value, **{name: cut(rows) for name, cut in changed.items()})
