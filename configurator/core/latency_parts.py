"""A predicted time by cause, and how two causes hide each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from configurator.core.units import Real

__all__ = ["Parts", "bound", "floor_share", "overlap", "sharper"]

_CAUSES = ("launch floor", "memory", "work items", "compute")


@dataclass(slots=True)
class Parts:
    """Seconds by cause. ``memory``, ``items`` and ``compute`` overlap in part; the rest adds."""

    floor: Real
    memory: Real
    items: Real
    compute: Real
    extra: Real
    total: Real


def overlap(first: Real, second: Real, share: float) -> Real:
    """Two times that hide each other in part: their sum less ``share`` of the harmonic term.

    Monotonic in both for a share up to 1, and without a power. At 0.72 close to a norm of
    power 1.4.
    """
    total = first + second
    return total - (share * first) * second / (total + 1e-30)


def sharper(first: Real, second: Real) -> Real:
    """Nearly the larger of two: their norm of power 4 (19 % above where they are equal)."""
    a, b = first * first, second * second
    return np.sqrt(np.sqrt(a * a + b * b))


def floor_share(found: Parts) -> Real:
    """Share of the time that does not depend on the bytes read: launches, prologues, merges.

    Above about a half, KV heads change memory and not speed.
    """
    useful = found.memory + found.compute
    return 1 - useful / (found.floor + found.items + found.extra + useful)


def bound(found: Parts) -> Any:
    """What bounds a prediction: ``launch floor``, ``memory``, ``work items`` or ``compute``."""
    causes = (found.floor + found.extra, found.memory, found.items, found.compute)
    largest = np.argmax(np.stack(np.broadcast_arrays(*causes)), axis=0)
    names = np.array(_CAUSES)[largest]
    return str(names) if np.ndim(largest) == 0 else names
