"""What ``probe``, ``study`` and ``heads`` share: live progress, Ctrl-C, and the checkpoint file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.core.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from configurator.probe.checkpoint import StopRequest
    from configurator.probe.train import Progress

__all__ = ["Device", "Live", "Resume", "Seeds", "Steps", "Training", "need_torch", "parse_seeds"]

_PANEL = "Long runs"
_EVERY_S = 5.0

Steps = Annotated[
    int | None,
    typer.Option("--steps", metavar="N", rich_help_panel=_PANEL, min=1, help="Training steps."),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|LIST",
        rich_help_panel=_PANEL,
        help="How many seeds, or which ones: 3, or 0,1,7 (default 2, 3 or 5).",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", rich_help_panel=_PANEL, help="auto, cpu, cuda or mps."
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        rich_help_panel=_PANEL,
        help="Go on from this checkpoint, and keep it there.",
    ),
]


def need_torch(purpose: str) -> None:
    """Raise ``MissingExtra`` (exit code 3) where torch is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtra("bench", "torch", purpose)


def parse_seeds(text: str) -> tuple[int, ...]:
    """``3`` as the seeds 0, 1, 2; ``0,1,7`` and ``7,`` as those."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UsageError(f"--seeds {text!r}: give a count such as 3, or numbers such as 0,1,7")
    numbers = tuple(map(int, parts))
    if "," in text:
        if len(set(numbers)) != len(numbers):
            raise UsageError(f"--seeds {text!r} names a seed twice")
        return numbers
    if not 1 <= numbers[0] <= 100:
        raise UsageError(
            f"--seeds {text!r}: a count is 1 to 100; for the seed {text} write {text},"
        )
    return tuple(range(numbers[0]))


@dataclass(slots=True)
class Live:
    """Progress on standard error: a bar with the live loss, or a line every few seconds."""

    total: int = 0
    _bar: Any = None
    _task: Any = None
    _began: float = field(default_factory=time.monotonic)
    _said: float = field(default_factory=time.monotonic)
    _passed: int = 0
    _label: str = ""
    _last: int = 0

    def plan(self, total: int) -> None:
        """Say how many steps there will be at the most."""
        self.total = total
        if self._bar is not None:
            self._task = self._bar.add_task("training", total=total, text="")

    def watch(self, now: Progress) -> None:
        """One step was done."""
        if now.label != self._label:
            self._label, self._last = now.label, now.step - 1
        self._passed += now.step - self._last
        self._last = now.step
        score = "" if now.accuracy is None else f", held out {now.accuracy:.1%}"
        text = f"{now.label}: step {now.step}/{now.steps}, loss {now.loss:.3f}{score}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._passed, text=text)
        elif time.monotonic() - self._said >= _EVERY_S:
            self._said = time.monotonic()
            print(f"{text}{self._left()}", file=sys.stderr)

    def _left(self) -> str:
        if not self.total or self._passed < 10:
            return ""
        pace = (time.monotonic() - self._began) / self._passed
        return f", at most {pace * max(0, self.total - self._passed):.0f} s left"

    @contextmanager
    def shown(self) -> Iterator[Live]:
        """Show the bar while the body runs, where standard error is a terminal."""
        if not sys.stderr.isatty():
            yield self
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
            TextColumn("{task.fields[text]}", markup=False),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            self._bar = bar
            if self.total:
                self.plan(self.total)
            yield self


@dataclass(frozen=True, slots=True)
class Training:
    """Where a long run keeps its checkpoint, and how it is told to stop."""

    resume: Path | None
    keep: Path
    stop: StopRequest
    live: Live

    @classmethod
    @contextmanager
    def begin(cls, resume: str | None, default: str) -> Iterator[Training]:
        """Run the body with progress and Ctrl-C handled; a stopped run exits with 130.

        ``resume`` names the checkpoint to go on from; a file that does not exist yet is where the
        run will be kept. Without it the checkpoint goes to ``default`` (a new name where that one
        is taken by an earlier run) and is deleted at the end.
        """
        from configurator.probe.checkpoint import Stopped, stop_on_interrupt

        keep = _free(default) if resume is None else Path(resume)
        found = keep.is_file()
        if resume is not None and not found:
            _check_writable(keep)
            print(f"{keep} does not exist yet: starting anew, kept there", file=sys.stderr)
        try:
            with stop_on_interrupt() as stop, Live().shown() as live:
                yield cls(keep if resume is not None and found else None, keep, stop, live)
        except Stopped as stopped:
            print(
                f"interrupted in {stopped.label} after step {stopped.step}; kept in {keep}: "
                f"repeat the command with --resume {keep}",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
        if resume is None:
            keep.unlink(missing_ok=True)


def _free(name: str) -> Path:
    """``name`` in the current folder, numbered where a stopped run has left that file."""
    first = Path(name)
    numbered = (first.with_stem(f"{first.stem}-{i}") for i in range(2, 1000))
    return next((p for p in (first, *numbered) if not p.exists()), first)


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(f"--resume {path}: not a file in an existing folder")


Watch = Callable[["Progress"], None]
