"""Scores of a backtest: shares in which answers agree, each lab's shape counted once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from configurator.backtest.compare import MEASURES

__all__ = ["SETS", "SIZES", "by_size", "by_year", "favours", "intervals", "score", "selected"]

Row = dict[str, Any]
SETS: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "plain": ("plain, 2024 on", lambda r: bool(r["plain"])),
    "plain_2025": ("plain, 2025 on", lambda r: bool(r["plain"] and r["year"] >= 2025)),
    "all": ("all, 2024 on", lambda r: True),
    "all_2025": ("all, 2025 on", lambda r: bool(r["year"] >= 2025)),
}
SIZES = (
    ("below 1B", 0.0, 1e9),
    ("1-4B", 1e9, 4e9),
    ("4-16B", 4e9, 16e9),
    ("16-40B", 16e9, 40e9),
    ("40-120B", 40e9, 120e9),
    ("above 120B", 120e9, math.inf),
)
LISTED = ("projection_and_kv", "and_d_head", "and_n_heads")
_RESAMPLES = 2000


def selected(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows of one of ``SETS``."""
    return [r for r in rows if SETS[name][1](r)]


def _share(rows: Sequence[Row], truth: Callable[[Row], bool]) -> float:
    total = sum(r["weight"] for r in rows)
    return sum(r["weight"] * truth(r) for r in rows) / total if total else math.nan


def score(rows: Sequence[Row]) -> dict[str, Any]:
    """Agreement of our answers and of the rule of thumb, and how often the choice was listed."""
    return {
        "models": len(rows),
        "shapes": sum(r["weight"] for r in rows),
        "ours": {m: _share(rows, lambda r, m=m: r["agrees"][m]) for m in MEASURES},  # type: ignore[misc]
        "thumb": {m: _share(rows, lambda r, m=m: r["thumb_agrees"][m]) for m in MEASURES},  # type: ignore[misc]
        "listed": {m: _share(rows, lambda r, m=m: r["listed"][m]) for m in LISTED},  # type: ignore[misc]
        "listed_in_five": {
            m: _share(rows, lambda r, m=m: r["listed_in_five"][m])  # type: ignore[misc]
            for m in LISTED
        },
        "on_front": _share(rows, lambda r: r["on_front"]),
        "on_front_or_listed": _share(
            rows, lambda r: r["on_front"] or r["listed"]["projection_and_kv"]
        ),
    }


def intervals(rows: Sequence[Row]) -> dict[str, list[float]]:
    """90 % intervals of our agreement over resampled labs (2,000 draws, always the same ones)."""
    labs = sorted({r["org"] for r in rows})
    if not labs:
        return {}
    place = {lab: i for i, lab in enumerate(labs)}
    totals, hits = np.zeros(len(labs)), np.zeros((len(MEASURES), len(labs)))
    for r in rows:
        totals[place[r["org"]]] += r["weight"]
        for k, m in enumerate(MEASURES):
            hits[k, place[r["org"]]] += r["weight"] * r["agrees"][m]
    draws = np.random.default_rng(0).integers(0, len(labs), (_RESAMPLES, len(labs)))
    found = hits[:, draws].sum(-1) / totals[draws].sum(-1)
    low, high = np.quantile(found, (0.05, 0.95), axis=1)
    return {m: [float(low[k]), float(high[k])] for k, m in enumerate(MEASURES)}


def by_year(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Scores of each year."""
    years = sorted({r["year"] for r in rows})
    return {str(year): score([r for r in rows if r["year"] == year]) for year in years}


def by_size(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Scores of each class of total parameters."""
    found = {}
    for name, low, high in SIZES:
        inside = [r for r in rows if low <= r["params"] < high]
        if inside:
            found[name] = score(inside)
    return found


def without(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """What each principle adds to our agreement: with it less without it."""
    names = rows[0]["without"] if rows else {}
    with_all = {m: _share(rows, lambda r, m=m: r["agrees"][m]) for m in MEASURES}  # type: ignore[misc]
    return {
        name: {
            m: with_all[m] - _share(rows, lambda r, m=m, n=name: r["without"][n][m])  # type: ignore[misc]
            for m in MEASURES
        }
        for name in names
    }


def favours(rows: Sequence[Row]) -> dict[str, float]:
    """Disagreements by whom the evidence favours, as shares of shapes; and how many there are."""
    apart = [r for r in rows if r["evidence"] is not None]
    sides = ("ours", "theirs", "neither", "cannot tell")
    found = {s: _share(apart, lambda r, s=s: r["evidence"]["favours"] == s) for s in sides}  # type: ignore[misc]
    return {"shapes": sum(r["weight"] for r in apart), **found}
