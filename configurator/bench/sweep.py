"""A run over many points: ordered, bounded, resumable; rows kept as they finish.

The work itself goes through :func:`configurator.runner.run_map`, so a sweep can be sharded,
resumed and sent to a cluster. What comes back is one plain document.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from configurator.bench.machine import environment
from configurator.bench.point import DEADLINE, measure_point
from configurator.bench.points import Point, attention_from, plan
from configurator.core.report import Measurement
from configurator.runner import run_map

__all__ = ["document", "measurements", "run", "rows_file", "winners"]

_FIELDS = {f.name for f in fields(Measurement)}
Progress = Callable[[str, int, int], None]


def rows_file(output: str | None = None) -> Path:
    """A new file for finished rows: beside ``output``, else in the user's state folder.

    Where that folder cannot be made, in the system's folder for temporary files.
    """
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    if output is not None:
        return Path(f"{output}.{stamp}.rows.jsonl")
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(base) / "mha-configurator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir())
    return folder / f"bench-{stamp}.jsonl"


def run(
    points: Sequence[Point],
    *,
    on: str | None = None,
    shard: str | None = None,
    budget_s: float | None = None,
    resume: str | None = None,
    keep: Path | None = None,
    accelerator: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Results of every point, most telling first; see :func:`configurator.runner.run_map`.

    Args:
        points: what to measure; :func:`plan` orders it.
        on: where; one point at a time on each device.
        shard: ``3/16``.
        budget_s: no point is begun that would end long after it.
        resume: a rows file to go on with.
        keep: the rows file of a new run.
        accelerator: the catalog's name of the device that a cluster's node must have.
        progress: called with the case, the points done and the points in all.

    Raises:
        KeyboardInterrupt: after Ctrl-C; stderr says where the finished rows are.
    """

    def told(row: dict[str, Any], done: int, total: int) -> None:
        if progress:
            progress(Point.from_item(row["item"]).case, done, total)

    ordered = plan(points)
    # "cpu" is not the name of a node's device: any node will do, one point at a time.
    device = accelerator or (ordered[0].device if ordered else "cpu")
    token = DEADLINE.set(None if budget_s is None else time.monotonic() + budget_s)
    try:
        return run_map(
            measure_point,
            [point.item() for point in ordered],
            on=on,
            shard=shard,
            budget_s=budget_s,
            resume=resume,
            results_file=keep if resume is None else None,
            accelerator=None if device == "cpu" else device,
            workers=1 if device == "cpu" else None,
            progress=told,
        )
    finally:
        DEADLINE.reset(token)


def document(results: Iterable[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """One document: ``rows``, ``environment``, ``best``, and whatever else is given.

    A point that was not measured has one row whose status says why. Where rows come from
    several machines, ``environments`` holds the others.
    """
    rows: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for result in results:
        if result["status"] == "ok":
            rows += result["row"]["rows"]
            if result["row"]["environment"] not in found:
                found.append(result["row"]["environment"])
        else:
            rows.append(_missing(Point.from_item(result["item"]), result))
    first = found[0] if found else environment(_device(results))
    others = [e for e in found[1:] if _place(e) != _place(first)]
    best = [
        {"case": r["case"], "phase": r["phase"], "formulation": r["formulation"],
         "path": r["path"], "measured_s": r["measured_s"]}
        for r in winners(rows)
    ]  # fmt: skip
    made = {**more, "best": best, "rows": rows, "environment": first}
    return made | {"environments": others} if others else made


def _device(results: Iterable[dict[str, Any]]) -> str:
    return next((r["item"]["device"] for r in results), "cpu")


def _place(environment: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(environment.get(k) for k in ("device_name", "cpu", "cores", "torch", "threads"))


def _missing(point: Point, result: dict[str, Any]) -> dict[str, Any]:
    reason = result.get("reason") or "not measured"
    over = "OverBudget" in reason or result["status"] == "skipped"
    return asdict(
        Measurement(
            case=point.case,
            formulation="",
            path="",
            phase=point.phase,
            cache_bytes_predicted=point.cache_bytes,
            cache_bytes_measured=None,
            predicted_s=None,
            measured_s=None,
            spread_s=None,
            bytes_per_s=None,
            share_of_bandwidth=None,
            status=f"not run: {reason.removeprefix('OverBudget: ')}"
            if over
            else f"failed: {reason}",
            batch=point.batch,
            context=point.context,
            projection=attention_from(point.attention).projection,
        )
    )


def winners(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fastest trusted row of each case and phase, in the order in which they first appear."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = (row["case"], row["phase"])
        if row["status"] != "ok" or not row["measured_s"]:
            continue
        if key not in best or row["measured_s"] < best[key]["measured_s"]:
            best[key] = row
    return list(best.values())


def measurements(rows: Iterable[dict[str, Any]]) -> list[Measurement]:
    """Rows of a document as the report's type."""
    found = []
    for row in rows:
        values: dict[str, Any] = {k: v for k, v in row.items() if k in _FIELDS}
        found.append(Measurement(**{**values, "flags": tuple(row["flags"])}))
    return found
