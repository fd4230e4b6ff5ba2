"""One function over many items: in process, in local processes, or on a Ray cluster.

A recipe for a command with ``--on``, ``--shard``, ``--budget`` and ``--resume``::

    rows = run_map(
        measure,                     # module-level; takes one plain JSON-able dict, returns one
        items,                       # all of them: the shard takes its own part
        on=on, shard=shard, budget_s=budget_s, resume=resume,
        accelerator=device.name,     # timings only: one at a time on each such device
        progress=lambda row, done, total: print(f"{done}/{total}", file=sys.stderr),
    )
    answers = [row["row"] for row in rows if row["status"] == "ok"]

Everything a result depends on belongs in its item, since the item's key is what a later run
recognises. Every item has one row in the answer, in the items' order:

    key, index, of, run, function, version, shard   which item of which run
    status     ok; failed (with ``reason``); skipped (not started: the budget was spent)
    item, row  what was asked and what the function returned
    attempts, seconds, node                         how, for how long and where it ran
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from configurator.core.errors import UsageError
from configurator.rows import Row, RowFile, Run, Shard, canonical, key_of, parse_shard, read_rows
from configurator.workers import Outcome, Task, Work, here, local, name_of

__all__ = ["DEFAULT_ON", "parse_on", "run_map"]

DEFAULT_ON = "MHA_CONFIGURATOR_ON"
RETRIES = 2

Progress = Callable[[Row, int, int], None]


def parse_on(on: str | None) -> str:
    """Where to run: ``here``, ``local``, ``ray`` or ``ray://HOST:PORT``.

    ``None`` takes the environment's ``MHA_CONFIGURATOR_ON``, else ``here``. ``ray`` takes the
    address in ``RAY_ADDRESS``, else the cluster this machine belongs to.
    """
    name = "on" if on else DEFAULT_ON
    where = (on or os.environ.get(DEFAULT_ON) or "here").strip()
    if where in ("here", "local", "ray"):
        return where
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if where.startswith("ray://") and host and port.isdecimal() and 0 < int(port) < 65536:
        return where
    raise UsageError(
        f"{name} {where[:60]!r} is not a place to run; write here, local (processes), "
        "ray (the address in RAY_ADDRESS) or ray://HOST:10001"
    )


def run_map(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    on: str | None = None,
    workers: int | None = None,
    accelerator: str | Sequence[str] | None = None,
    results_file: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    shard: str | Shard | None = None,
    key: Callable[[Any], str] = key_of,
    budget_s: float | None = None,
    retries: int = RETRIES,
    progress: Progress | None = None,
) -> list[Row]:
    """Rows of ``function`` over ``items``, one for each distinct item; see the module's recipe.

    Args:
        function: module-level; takes one plain JSON value, returns one. What it raises becomes
            the reason of a failed row and is not tried again.
        items: plain JSON values; an item given twice is done once.
        on: where to run (:func:`parse_on`).
        workers: processes, or tasks in flight on a cluster; default: one per core (``local``),
            all there is room for (``ray``), and one per device with ``accelerator``.
        accelerator: the catalog name of the device that must do the work, or several names of
            it: on Ray a node that has it; locally one process per visible GPU. One item at a
            time on each device, so that timings do not disturb one another.
        results_file: where finished rows are appended, one line each, on the disk before the
            next is taken up. It must not exist yet, unless it is also ``resume``.
        resume: a rows file whose finished rows are taken over, and where new ones go; it is
            begun where it does not exist. Failed rows are redone.
        shard: ``I/N``, to run only the I-th of N parts.
        key: the stable name of an item.
        budget_s: after this many seconds no further item is started.
        retries: how often an item is given to another worker after its worker or node died.
        progress: called with each row as it finishes, the count done and the count in all.

    Raises:
        UsageError: an option that is not understood, rows of another run in the file.
        Missing: Ray is not installed, no cluster answers, or none has the accelerator.
        ValueError: ``function`` cannot be imported by a worker.
        KeyboardInterrupt: after Ctrl-C; finished rows are in the file, and stderr says so.
    """
    where, part = parse_on(on), parse_shard(shard)
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}; at least 1 is needed")
    name = name_of(function, importable=where != "here")
    tasks = _tasks(items, key)
    run = Run.over(name, [t.key for t in tasks], _version())
    mine = [t for t in tasks if part is None or part.takes(t.index)]
    with ExitStack() as stack:
        file = _rows_file(stack, run, results_file, resume)
        rows = {t.key: file.finished[t.key] for t in mine if file and t.key in file.finished}
        todo = [t for t in mine if t.key not in rows]
        deadline = None if budget_s is None else time.monotonic() + budget_s

        def may_start() -> bool:
            return deadline is None or time.monotonic() < deadline

        outcomes = _backend(where, function, name, todo, may_start, workers, accelerator, retries)
        try:
            for task, outcome in stack.enter_context(closing(outcomes)):
                row = _row(run, task, part, outcome)
                if file:
                    file.append(row)
                rows[task.key] = row
                if progress:
                    progress(row, len(rows), len(mine))
        except KeyboardInterrupt:
            print(f"interrupted: {_kept(file, mine, len(rows))}", file=sys.stderr)
            raise
    reason = f"not started: the budget of {budget_s:g} s was spent" if budget_s else ""
    skipped = Outcome(status="skipped", reason=reason, attempts=0)
    return [rows.get(t.key) or _row(run, t, part, skipped) for t in mine]


def _kept(file: RowFile | None, mine: list[Task], done: int) -> str:
    """What an interrupted run leaves; the file is asked, as a row may be just written."""
    if file is None:
        return f"{done} of {len(mine)} rows were done and are not kept; --resume FILE keeps them"
    there = {row["key"] for row in read_rows(file.path)[0]}
    count = sum(task.key in there for task in mine)
    return f"{count} of {len(mine)} rows kept in {file.path}; --resume {file.path} goes on"


def _version() -> str:
    from configurator import __version__

    return __version__


def _tasks(items: Iterable[Any], key: Callable[[Any], str]) -> list[Task]:
    distinct: dict[str, Any] = {}
    for item in items:
        canonical(item)  # refuses what could not be sent or written
        distinct.setdefault(key(item), item)
    return [Task(k, index, item) for index, (k, item) in enumerate(distinct.items())]


def _rows_file(
    stack: ExitStack,
    run: Run,
    results_file: str | os.PathLike[str] | None,
    resume: str | os.PathLike[str] | None,
) -> RowFile | None:
    """The file that new rows go to, holding what may be taken over."""
    path = results_file if results_file is not None else resume
    if path is None:
        return None
    same = resume is not None and Path(path).absolute() == Path(resume).absolute()
    if not same and Path(path).exists():
        raise UsageError(f"rows file {str(path)!r} exists; --resume {path} goes on with it")
    file = stack.enter_context(RowFile(path, run))
    if resume is not None and not same:
        with RowFile(resume, run) as earlier:
            for row in earlier.finished.values():
                file.append(row)
            file.finished.update(earlier.finished)
    return file


def _backend(
    where: str,
    function: Callable[[Any], Any],
    name: str,
    tasks: list[Task],
    may_start: Callable[[], bool],
    workers: int | None,
    accelerator: str | Sequence[str] | None,
    retries: int,
) -> Work:
    if not tasks:
        return here(function, [], may_start)
    if where == "here":
        return here(function, tasks, may_start)
    if where == "local":
        exclusive = accelerator is not None
        return local(name, tasks, may_start, workers=workers, exclusive=exclusive, retries=retries)
    from configurator.cluster import on_ray

    names = (accelerator,) if isinstance(accelerator, str) else tuple(accelerator or ())
    return on_ray(
        where,
        name,
        tasks,
        may_start,
        version=_version(),
        workers=workers,
        accelerator=names,
        retries=retries,
    )


def _row(run: Run, task: Task, part: Shard | None, outcome: Outcome) -> Row:
    """One line of the file; made plain as it will be read back."""
    row = {
        "key": task.key,
        "index": task.index,
        "of": run.of,
        "run": run.id,
        "function": run.function,
        "version": run.version,
        "shard": str(part) if part else None,
        "status": outcome.status,
        "item": task.item,
        "row": outcome.row,
        "reason": outcome.reason,
        "attempts": outcome.attempts,
        "seconds": outcome.seconds,
        "node": outcome.node,
    }
    plain: Row = json.loads(canonical(row))
    return plain
