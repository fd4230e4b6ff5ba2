"""Sweeps: the answer at every point of one or more axes, and the regimes between its changes.

All contexts and batches of a budget are worked out at once: candidates lie on one axis of the
columns, points on another. Axes that change the candidates (parameters, targets) go one by one,
and may go to other processes or machines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from configurator import __version__
from configurator.assemble import label
from configurator.core.errors import UsageError, show, unknown
from configurator.core.units import parse_params, parse_tokens
from configurator.question import Question
from configurator.rank import order, principles
from configurator.repeat import command, echo
from configurator.runner import run_map
from configurator.schema import Request
from configurator.search import PROJECTIONS, Table, only, work_columns
from configurator.target import device_of

__all__ = ["KINDS", "Axis", "Sweep", "parse_axis", "sweep", "swept"]

KINDS = ("MHA", "GQA-8", "GQA-4", "GQA-2", "MQA", "MLA")
_MOST_POINTS = 20_000
_CHUNK = 500
_SYNTAX = "write NAME=A..B, NAME=A..B:POINTS or NAME=A,B,C, such as context=4k..1M"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One thing that changes: ``context``, ``batch``, ``params`` or ``target``, and its values."""

    name: str
    values: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers that can be drawn on a scale."""
        return self.name != "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The answer at every point, and runs of points that share it.

    A row holds the values of its point, ``status`` (``ok``, ``needs 8-bit weights``,
    ``out of memory``, or ``refused`` with a ``reason``), the answer with its cache, decode time
    and expected loss, the fastest kind that fits, and what each kind would cost. A regime runs
    along the first axis from one value to another.
    """

    axes: tuple[Axis, ...]
    rows: tuple[dict[str, Any], ...]
    regimes: tuple[dict[str, Any], ...]
    request: dict[str, Any]
    asked: int
    command: str
    version: str = __version__


def _whole(text: str, what: str) -> int:
    if not re.fullmatch(r"\s*\d{1,7}\s*", text) or not int(text):
        raise UsageError(
            f"{what} {text[:40]!r} is not a whole number from 1 to 9,999,999; write 8 or 1..64"
        )
    return int(text)


_PARSERS: Mapping[str, Callable[[str, str], Any]] = {
    "context": parse_tokens,
    "batch": _whole,
    "params": parse_params,
    "target": lambda text, what: text.strip(),
}


def parse_axis(text: str) -> Axis:
    """``context=4k..1M``, ``batch=1..64:20``, ``params=1B,7B``, ``target=rtx-4090,h100-sxm``.

    A range has the quarters between doublings as its points, or as many as asked for, evenly
    spaced in ratio. Raises ``UsageError`` for anything else.
    """
    if not isinstance(text, str):
        raise UsageError(f"sweep {show(text)} is not an axis; {_SYNTAX}")
    name, equals, values = text.partition("=")
    name = name.strip().lower().replace("-", "_")
    if not equals or not values.strip():
        raise UsageError(f"sweep {text[:60]!r} is not an axis; {_SYNTAX}")
    if name not in _PARSERS:
        raise unknown("sweep axis", name, _PARSERS, f"use {', '.join(_PARSERS)}")
    parse, what = _PARSERS[name], f"sweep {name}"
    if ".." not in values:
        listed = [parse(part, what) for part in values.split(",") if part.strip()]
        return Axis(name=name, values=tuple(dict.fromkeys(listed)))
    if name == "target":
        raise UsageError("sweep target is a list, not a range; write target=rtx-4090,h100-sxm")
    ends, _, count = values.partition(":")
    first, _, last = ends.partition("..")
    low, high = parse(first, what), parse(last, what)
    if low >= high:
        raise UsageError(f"sweep {name} goes from {low:,} to {high:,}; write the smaller end first")
    if count and not 2 <= _whole(count, f"{what} points") <= _MOST_POINTS:
        raise UsageError(f"{what} points {count} must be from 2 to {_MOST_POINTS:,}")
    return Axis(name=name, values=_between(low, high, int(count) if count else 0))


def _between(low: int, high: int, count: int) -> tuple[int, ...]:
    """Whole numbers from ``low`` to ``high``: ``count`` in equal ratio, or four a doubling."""
    if count:
        spread = np.geomspace(low, high, count)
        return tuple(int(v) for v in np.unique(np.rint(spread).astype(np.int64)))
    found, doubling = [], float(low)
    while doubling < high:
        found += [round(doubling * (1 + quarter / 4)) for quarter in range(4)]
        doubling *= 2
    return tuple(dict.fromkeys([v for v in found if v < high] + [high]))


def sweep(
    request: Request,
    axes: Sequence[Axis | str],
    *,
    on: str | None = None,
    shard: str | None = None,
    resume: str | None = None,
    budget_s: float | None = None,
) -> Sweep:
    """The answer to ``request`` at every point of ``axes``.

    The other arguments are those of :func:`configurator.runner.run_map`. A point whose request
    is impossible is a row with the reason, not an error, as long as another one is possible.

    Raises ``UsageError`` for an axis that is not understood, one given twice, an unknown target,
    too many points, or none that is possible.
    """
    found = tuple(a if isinstance(a, Axis) else parse_axis(a) for a in axes)
    names = [a.name for a in found]
    if len(set(names)) < len(names):
        raise UsageError(f"sweep {', '.join(names)} names an axis twice; put its values in one")
    count = int(np.prod([len(a.values) for a in found])) if found else 0
    if not 0 < count <= _MOST_POINTS:
        raise UsageError(f"sweep has {count:,} points; from 1 to {_MOST_POINTS:,} are possible")
    for target in (value for a in found if a.name == "target" for value in a.values):
        device_of({"target": target})
    items = _items(request, found)
    done = run_map(swept, items, on=on, shard=shard, resume=resume, budget_s=budget_s)
    failed = next((r for r in done if r["status"] == "failed"), None)
    if failed:
        raise UsageError(f"a part of the sweep failed: {failed['reason']}")
    rows = [row for r in done if r["status"] == "ok" for row in r["row"]["rows"]]
    if shard is None and rows and all(row["status"] == "refused" for row in rows):
        raise UsageError(rows[0]["reason"])
    rows.sort(key=lambda row: [_place(a, row) for a in (*found[1:], found[0])])
    given = {a.name: ",".join(map(str, a.values)) for a in found}
    question = Question(request)
    return Sweep(
        axes=found,
        rows=tuple(rows),
        regimes=tuple(_regimes(rows, found)),
        request={**echo(request, question.workload), **given},
        asked=count,
        command=_command(request, names, axes),
    )


def _command(request: Request, names: Sequence[str], axes: Sequence[Axis | str]) -> str:
    """The command for a sweep: what it sets itself is left out of the request's own flags."""
    words = shlex.split(command("recommend", request))
    for name in names:
        if f"--{name}" in words:
            at = words.index(f"--{name}")
            del words[at : at + 2]
    texts = [a if isinstance(a, str) else f"{a.name}={','.join(map(str, a.values))}" for a in axes]
    return shlex.join([*words, *(w for text in texts for w in ("--sweep", text))])


def _place(axis: Axis, row: Mapping[str, Any]) -> int:
    return axis.values.index(row[axis.name])


def _items(request: Request, axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Parts of the sweep: one for each budget and target, its points in chunks."""
    asked = request.given()
    slow = [a for a in axes if a.name in ("params", "target")]
    quick = [a for a in axes if a.name in ("context", "batch")]
    points: list[dict[str, Any]] = [
        dict(zip([a.name for a in quick], values, strict=True))
        for values in product(*(a.values for a in quick))
    ]
    items = []
    for values in product(*(a.values for a in slow)):
        fixed: dict[str, Any] = dict(zip([a.name for a in slow], values, strict=True))
        for start in range(0, len(points), _CHUNK):
            part = points[start : start + _CHUNK]
            whole: dict[str, Any] = {**asked, **fixed}
            items.append({"request": whole, "fixed": fixed, "points": part})
    return items


def swept(item: dict[str, Any]) -> dict[str, Any]:
    """The rows of one part: a budget and a target at many contexts and batches. Plain JSON."""
    points = item["points"]
    base = {**item["request"], **points[0]}
    try:
        question = Question(Request(**base))
        frame = question.frames[0]
        table, _ = question.ranked(question.grids(frame), frame)
    except UsageError as error:
        refused = {"status": "refused", "reason": str(error)}
        return {"rows": [{**item["fixed"], **p, **refused} for p in points]}
    table = only(table, question.asked)
    shown = _representatives(table, question)
    rows = []
    for point, here in zip(points, _at_points(table, question, points), strict=True):
        work = replace(question.workload, **point)
        best = int(order(here, principles(frame, work, question.device))[0])
        rows.append({**item["fixed"], **point, **_answer(here, best), **_kinds(here, shown)})
    return {"rows": rows}


def _at_points(
    table: Table, question: Question, points: Sequence[Mapping[str, int]]
) -> list[Table]:
    """The table at every point: points on the first axis of the columns, candidates on the last."""

    def column(name: str, value: Any) -> Any:
        return np.array([p.get(name, value) for p in points], dtype=np.int64)[:, None]

    work = replace(
        question.workload,
        context=column("context", question.workload.context),
        batch=column("batch", question.workload.batch),
    )
    parts = [(g.rows, work_columns(replace(g.case, workload=work))) for g in table.grids]
    names = ("cache_bytes", "device_bytes", "decode_s", "fits")
    columns = {
        name: np.concatenate(
            [np.broadcast_to(np.asarray(c[name]), (len(points), n)) for n, c in parts], axis=1
        )
        for name in names
    }
    return [replace(table, **{n: c[i] for n, c in columns.items()}) for i in range(len(points))]


def _representatives(table: Table, question: Question) -> dict[str, int]:
    """The best candidate of each kind where memory is no object, of the preferred head width."""
    wish = principles(question.frames[0], question.workload, question.device)
    anywhere = replace(table, room_bytes=np.full(len(table), np.inf))
    ranked = [int(i) for i in order(anywhere, wish) if table.admissible[i]]
    found: dict[str, int] = {}
    for i in sorted(ranked, key=lambda i: bool(table.d_head[i] != wish.d_head)):
        found.setdefault(_kind(table, i), i)
    return {kind: found[kind] for kind in KINDS if kind in found}


def _kind(table: Table, i: int) -> str:
    name = PROJECTIONS[int(table.projection[i])]
    return f"GQA-{int(table.n_kv_heads[i])}" if name == "GQA" else name


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _answer(here: Table, best: int) -> dict[str, Any]:
    if here.fits[best]:
        status = "ok"
    else:
        light = here.device_bytes[best] <= here.light_room_bytes[best]
        status = "needs 8-bit weights" if light else "out of memory"
    return {
        "status": status,
        "answer": _kind(here, best),
        "d_head": int(here.d_head[best]),
        "label": label(here.case(best)),
        "cache_bytes": int(here.cache_bytes[best]),
        "decode_s": _number(here.decode_s[best]),
        "penalty_nats": float(here.penalty_nats[best]),
    }


def _kinds(here: Table, shown: Mapping[str, int]) -> dict[str, Any]:
    costs = {
        kind: {
            "fits": bool(here.fits[i]),
            "cache_bytes": int(here.cache_bytes[i]),
            "decode_s": _number(here.decode_s[i]),
        }
        for kind, i in shown.items()
    }
    timed = {k: c["decode_s"] for k, c in costs.items() if c["fits"] and c["decode_s"]}
    return {"fastest": min(timed, key=lambda k: timed[k]) if timed else None, "kinds": costs}


def _regimes(rows: Sequence[dict[str, Any]], axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Runs of points along the first axis with the same answer, head width and status."""
    first, others = axes[0].name, [a.name for a in axes[1:]]
    found: list[dict[str, Any]] = []
    for row in rows:
        where = {name: row[name] for name in others}
        what = {
            "answer": row.get("answer", ""),
            "d_head": row.get("d_head", 0),
            "status": row["status"],
        }
        last = found[-1] if found else None
        if last and all(last[k] == v for k, v in {**where, **what}.items()):
            last["to"] = row[first]
            last["points"] += 1
        else:
            found.append(
                {**where, "axis": first, "from": row[first], "to": row[first], "points": 1, **what}
            )
    return found
