"""Rows of long runs as JSON lines: written one by one, resumed, split in shards and joined.

A rows file is append-only. Each line is one finished item with the run it belongs to, so files
written by several machines can be joined, and a file whose writer was killed can be continued.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from configurator.core.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows: two writers on one file are then not noticed
    fcntl = None  # type: ignore[assignment]

__all__ = ["Joined", "RowFile", "Run", "Shard", "join", "key_of", "lines", "parse_shard",
           "read_rows"]  # fmt: skip

Row = dict[str, Any]
_T = TypeVar("_T")
_TEXTS = ("key", "run", "function", "version", "status")
_FIELDS = {*_TEXTS, "index", "of", "row"}
_MOST_ITEMS = 10**7


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text.

    Raises ``TypeError`` or ``ValueError`` for what is not plain JSON (NaN included).
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def key_of(item: Any) -> str:
    """The stable name of an item: the SHA-256 of its canonical JSON.

    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical(item).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` (from 1) of ``count``: every ``count``-th item, so parts take alike long."""

    index: int
    count: int

    def takes(self, position: int) -> bool:
        """Whether the item at ``position`` (from 0) belongs to this part."""
        return position % self.count == self.index - 1

    def take(self, items: Sequence[_T]) -> list[_T]:
        """The items of this part, in order."""
        return list(items[self.index - 1 :: self.count])

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def parse_shard(text: str | Shard | None) -> Shard | None:
    """A part such as ``3/16``; raises ``UsageError`` for anything else.

    >>> str(parse_shard("3/16"))
    '3/16'
    """
    if text is None or isinstance(text, Shard):
        return text
    match = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"shard {text[:40]!r} is not a part; write I/N with I from 1 to N, such as 3/16"
        )
    return Shard(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What rows must share to be joined: the function, the items and the version."""

    function: str
    version: str
    of: int
    id: str

    @classmethod
    def over(cls, function: str, keys: Sequence[str], version: str) -> Run:
        """The run of ``function`` over the items with these keys, in this order."""
        text = "\n".join([function, *keys])
        return cls(
            function=function,
            version=version,
            of=len(keys),
            id=hashlib.sha256(text.encode()).hexdigest()[:16],
        )

    def refuse_other(self, row: Row, where: str) -> None:
        """Raise ``UsageError`` in one line when ``row`` was written by another run or version."""
        theirs = (row["function"], row["run"], row["version"])
        if theirs == (self.function, self.id, self.version):
            return
        if row["function"] != self.function:
            what = f"rows of {row['function']}, not of {self.function}"
        elif row["run"] != self.id:
            what = (
                f"rows of another run ({row['run']}, {row['of']} items; not {self.id}, {self.of})"
            )
        else:
            what = f"rows of version {row['version']}, not {self.version}"
        raise UsageError(
            f"{where} holds {what}; rows of different runs or versions are not mixed: "
            "use another file, or the same command and version"
        )


def read_rows(path: Path) -> tuple[list[Row], int]:
    """The rows of a file and the length in bytes of its whole lines.

    A last line without its line break was torn by a killed writer and is left out. Raises
    ``UsageError`` for a file that cannot be read or holds a line that is not a row.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"rows file {str(path)!r}: {error.strerror or error}") from None
    whole = data.rfind(b"\n") + 1
    rows: list[Row] = []
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            row = None
        if not _is_row(row):
            raise UsageError(
                f"rows file {str(path)!r} line {number} is not a row of a run; "
                "give a file written with --resume or by merge"
            )
        rows.append(row)
    return rows, whole


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not row.keys() >= _FIELDS:
        return False
    if not all(isinstance(row[name], str) for name in _TEXTS):
        return False
    try:
        parse_shard(row.get("shard"))
    except (UsageError, TypeError):
        return False
    index, of = row["index"], row["of"]
    return type(index) is int and type(of) is int and 0 <= index < of <= _MOST_ITEMS


def latest(rows: Iterable[Row]) -> dict[str, Row]:
    """One row per key: a finished one before a failed one, else the last written."""
    found: dict[str, Row] = {}
    for row in rows:
        known = found.get(row["key"])
        if known is None or known["status"] != "ok":
            found[row["key"]] = row
    return found


class RowFile:
    """A rows file held open by one writer; ``finished`` are the rows it already had, by key.

    Opening cuts a torn last line away. Failed rows are not in ``finished``, so they are redone;
    their lines stay as history and readers prefer the finished one. Raises ``UsageError`` for
    rows of another run, and while another process writes to the same file.
    """

    def __init__(self, path: str | os.PathLike[str], run: Run) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            text = f"rows file {str(self.path)!r}: {error.strerror or error}"
            raise UsageError(f"{text}; give a path that can be written") from None
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise UsageError(f"rows file {str(self.path)!r} is no plain file; name one")
            self._lock()
            rows, whole = read_rows(self.path)
            for row in rows:
                run.refuse_other(row, repr(str(self.path)))
            os.ftruncate(self._descriptor, whole)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.finished = {k: r for k, r in latest(rows).items() if r["status"] == "ok"}

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"rows file {str(self.path)!r} is being written by another process; "
                "give each part of a run its own file"
            ) from None
        except OSError:
            return  # a file system without locks

    def append(self, row: Row) -> None:
        """Add one line and wait until it is on the disk."""
        data = (canonical(row) + "\n").encode()
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)

    def __enter__(self) -> RowFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Rows of one run, one per item, in the items' order, and what is not there."""

    rows: tuple[Row, ...]
    run: Run
    missing: tuple[int, ...]
    failed: tuple[int, ...]
    repeated: int
    shards: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Every item has a finished row."""
        return not self.missing and not self.failed

    def absent_shards(self) -> tuple[str, ...]:
        """Parts that lack rows, when all files agree on the number of parts; else none."""
        counts = {int(s.partition("/")[2]) for s in self.shards}
        if len(counts) != 1:
            return ()
        count = counts.pop()
        return tuple(f"{i}/{count}" for i in sorted({p % count + 1 for p in self.missing}))

    def says(self) -> list[str]:
        """What was joined and what is not there, a line each."""
        text = f"{len(self.rows)} of {self.run.of} rows of {self.run.function}"
        found = [f"{text}; {self.repeated} repeated left out" if self.repeated else text]
        if self.missing:
            shards = self.absent_shards()
            where = f"shards {', '.join(shards)}" if shards else f"items {_some(self.missing)}"
            found.append(f"missing: {len(self.missing)} rows ({where})")
        if self.failed:
            found.append(f"failed: {len(self.failed)} rows (items {_some(self.failed)})")
        return found


def _some(numbers: Sequence[int], most: int = 10) -> str:
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(map(str, numbers[:most])) + more


def lines(rows: Iterable[Row]) -> str:
    """Rows as the text of a rows file."""
    return "".join(canonical(row) + "\n" for row in rows)


def join(paths: Sequence[str | os.PathLike[str]]) -> Joined:
    """Rows of several files as one run's; raises ``UsageError`` where runs or versions differ."""
    if not paths:
        raise UsageError("no rows files were given; write merge FILE...")
    run: Run | None = None
    first, rows = "", []
    for path in paths:
        for row in read_rows(Path(path))[0]:
            if run is None:
                first = str(path)
                run = Run(
                    function=row["function"], version=row["version"], of=row["of"], id=row["run"]
                )
            run.refuse_other(row, f"{str(path)!r} (unlike {first!r})")
            rows.append(row)
    if run is None:
        raise UsageError(f"no rows in {', '.join(map(str, paths))}; did the run finish any item?")
    found = latest(rows)
    ordered = sorted(found.values(), key=lambda row: int(row["index"]))
    present = {row["index"] for row in ordered}
    return Joined(
        rows=tuple(ordered),
        run=run,
        missing=tuple(i for i in range(run.of) if i not in present),
        failed=tuple(row["index"] for row in ordered if row["status"] != "ok"),
        repeated=len(rows) - len(found),
        shards=tuple(sorted({row["shard"] for row in rows if row.get("shard")})),
    )
