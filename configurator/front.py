"""The Pareto front: rows that no other row equals or beats in every cost and beats in one."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

__all__ = ["pareto"]

_SAMPLE = 512
_PIVOTS = 24


def pareto(*costs: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """A truth for each row: it is on the front of ``costs``, lower being better.

    Equal rows are all kept. An unknown cost (NaN) counts as zero, so it keeps nobody out.
    Sorting and one sweep take ``n log n`` for up to three costs; rows that a few good rows beat
    are dropped before, column-wise, which on real costs is nearly all of them.
    """
    rows = np.asarray(costs[0]).size
    where = np.arange(rows) if among is None else np.flatnonzero(among)
    values = np.stack([np.asarray(c, dtype=np.float64)[where] for c in costs])
    np.copyto(values, 0.0, where=np.isnan(values))
    front = np.zeros(rows, dtype=np.bool_)
    values, where = _thinned(values, where)
    if where.size:
        front[where[(_sweep if len(values) <= 3 else _one_by_one)(values)]] = True
    return front


def _beaten(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Columns of ``values`` that are nowhere lower than ``by`` and somewhere higher."""
    nowhere, somewhere = values[0] >= by[0], values[0] > by[0]
    for value, best in zip(values[1:], by[1:], strict=True):
        nowhere &= value >= best
        somewhere |= value > best
    beaten: np.ndarray = nowhere & somewhere
    return beaten


def _thinned(values: np.ndarray, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both without the rows beaten by the best of a sample: those of lowest summed rank."""
    if where.size <= _SAMPLE:
        return values, where
    sample = values[:, :: where.size // _SAMPLE]
    ranks = sample.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable").sum(axis=0)
    for pivot in sample[:, np.argsort(ranks, kind="stable")[:_PIVOTS]].T:
        if where.size <= _SAMPLE:  # the sweep is as quick
            break
        alive = ~_beaten(values, pivot)
        if np.count_nonzero(alive) < 0.98 * alive.size:
            values, where = values[:, alive], where[alive]
    return values, where


def _sweep(values: np.ndarray) -> np.ndarray:
    """Positions on the front of one to three costs, in the order of the first.

    The rows seen so far are summed up by a staircase: second costs that rise while third costs
    fall. A row is beaten where a step at or left of it is at or below it.
    """
    rows = np.zeros((3, values.shape[1]))
    rows[: len(values)] = values
    order = np.lexsort(rows[::-1])
    steps, floors = [-np.inf], [np.inf]
    kept: list[int] = []
    last, last_kept = None, False
    for position, row in zip(order.tolist(), rows[:, order].T.tolist(), strict=True):
        _, second, third = row
        if row != last:
            at = bisect_right(steps, second)
            last, last_kept = row, third < floors[at - 1]
            if last_kept:
                end = at
                while end < len(steps) and floors[end] >= third:
                    end += 1
                if steps[at - 1] == second:
                    at -= 1
                steps[at:end], floors[at:end] = [second], [third]
        if last_kept:
            kept.append(position)
    return np.array(kept, dtype=np.int64)


def _one_by_one(values: np.ndarray) -> np.ndarray:
    """Positions on the front of any number of costs, by one pass for each row of the front."""
    order = np.lexsort(values[::-1])
    left, where = values[:, order], order
    at = 0
    while at < left.shape[1]:  # sorted, so the first row left is beaten by none
        alive = ~_beaten(left, left[:, at])
        left, where = left[:, alive], where[alive]
        at += 1
    return where
