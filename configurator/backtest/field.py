"""What other labs did at about the same budget: how far the field agrees, and words for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from configurator.backtest.compare import MEASURES, agreement

__all__ = ["agreement_of_labs", "comparable", "says"]

Row = dict[str, Any]
_PARAMS, _WIDTH, _SPARSITY, _CONTEXT = 1.35, 1.15, 2.0, 4.0
_MANY, _MOST = 5, 0.8  # from so many shapes on, and this share of them, "almost every team"


def _within(a: float, b: float, factor: float) -> bool:
    return max(a, b) <= factor * min(a, b)


def comparable(a: Row, b: Row) -> bool:
    """Models of different labs with nearly the same budget, width, sparsity and context."""
    return (
        a["org"] != b["org"]
        and _within(a["params"], b["params"], _PARAMS)
        and _within(a["d_model"], b["d_model"], _WIDTH)
        and _within(a["sparsity"], b["sparsity"], _SPARSITY)
        and _within(a["request"]["context"], b["request"]["context"], _CONTEXT)
    )


def _shapes(rows: Sequence[Row]) -> list[Row]:
    """One row for each lab's shape, dense and mixture apart."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        p = row["published"]
        heads = (p["projection"], p["n_heads"], p["n_kv_heads"], p["d_head"])
        found.setdefault((row["org"], row["d_model"], row["n_layers"], row["kind"], *heads), row)
    return list(found.values())


def agreement_of_labs(rows: Sequence[Row]) -> dict[str, Any]:
    """How often two labs with the same budget chose the same, and the ceiling that follows.

    A rule that gives one answer for a budget can at best name the commonest choice: where two
    labs agree with frequency ``a``, its share lies between ``a`` and the square root of ``a``.
    """
    pairs = [(a, b) for a, b in combinations(_shapes(rows), 2) if comparable(a, b)]
    same = [agreement(a["published"], b["published"]) for a, b in pairs]
    share = {m: sum(s[m] for s in same) / len(same) if same else math.nan for m in MEASURES}
    return {
        "pairs": len(pairs),
        "agree": share,
        "ceiling": {m: [a, math.sqrt(a)] for m, a in share.items()},
    }


def says(row: Row, rows: Sequence[Row]) -> str:
    """What the field says on the points in which our answer differs from the published one."""
    ours, theirs = row["ours"], row["published"]
    others = [r["published"] for r in _shapes(rows) if comparable(row, r)]
    labs = {id(r["published"]): r["org"] for r in rows}
    said = []
    for name, value in _points(row).items():
        mine, other = value(ours), value(theirs)
        if mine == other:
            continue
        for_us = sorted({labs[id(o)] for o in others if value(o) == mine})
        for_them = sorted({labs[id(o)] for o in others if value(o) == other} | {row["org"]})
        count = sum(value(o) == mine for o in others)
        if len(others) >= _MANY and count >= _MOST * len(others):
            said.append(f"{name}: almost every team chose {mine} ({count} of {len(others)} shapes)")
        elif len(for_us) > 1 and len(for_them) > 1:
            said.append(
                f"{name}: several good teams chose {mine} ({_two(for_us)}), several chose {other} "
                f"({_two(for_them)})"
            )
        else:
            who = f" ({_two(for_us)} chose {mine})" if for_us else ""
            said.append(f"{name}: {_alone(row, name, other)}{who}")
    return "; ".join(said)


def _points(row: Row) -> dict[str, Callable[[Row], Any]]:
    """The choices that can be compared: KV heads and head width only between grouped ones."""
    grouped = row["ours"]["projection"] == row["published"]["projection"] != "MLA"
    found: dict[str, Callable[[Row], Any]] = {"projection": lambda g: g["projection"]}
    if grouped:
        found["KV heads"] = lambda g: g["n_kv_heads"] if g["projection"] != "MLA" else None
    if "MLA" not in (row["ours"]["projection"], row["published"]["projection"]):
        found["head width"] = lambda g: g["d_head"] if g["projection"] != "MLA" else None
    found["heads"] = lambda g: g["n_heads"]
    return found


def _two(labs: Sequence[str]) -> str:
    return " and ".join(labs[:2])


def _alone(row: Row, name: str, value: Any) -> str:
    """A choice that no comparable model shares: dated, a house style, or a variant."""
    theirs, context = row["published"], row["request"]["context"]
    if name == "projection" and value == "MHA" and context > 8192:
        return "MHA beyond 8k was common in 2024; no new plain shape has it since"
    if name == "head width" and value == 64 and row["params"] >= 1e9:
        return "64 above a billion parameters was common in 2024; since then in windowed ones only"
    narrowed = theirs["n_heads"] * theirs["d_head"] < 0.95 * row["d_model"]
    odd = name == "KV heads" and value & (value - 1)
    house = (name == "head width" and value > 128) or (name == "projection" and value == "MQA")
    if house or odd or (name == "heads" and narrowed):
        return f"{value} is a known variant; nothing in the inputs argues for or against it"
    return f"no comparable model of another lab chose {value}"
