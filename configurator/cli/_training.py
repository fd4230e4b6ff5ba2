"""What ``probe``, ``study`` and ``heads`` share: live progress, Ctrl-C, files to write."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.core.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from configurator.probe.checkpoint import StopRequest
    from configurator.probe.train import Progress

__all__ = [
    "Device",
    "Live",
    "Resume",
    "Seeds",
    "Steps",
    "Training",
    "check_files",
    "need_torch",
    "parse_seeds",
]

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
        help="How many seeds, or which ones: 3, or 0,1,7 (default 2; a study 5).",
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


def check_files(output: str | None, plot: str | None) -> None:
    """Refuse, before a long run, an output or a picture that cannot be written at its end."""
    from configurator.cli.output import check_writable, form

    for name, path in (("--output", output), ("--plot", plot)):
        if path is not None:
            form(None, path)
            check_writable(name, Path(path))
    if plot is not None and Path(plot).suffix.lower() != ".svg":
        raise UsageError(f"--plot {plot!r}: pictures are SVG; name a file that ends in .svg")
    if output is not None and Path(output).suffix.lower() == ".svg":
        raise UsageError(f"--output {output!r} is for the answer; a picture's file is --plot")


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
    _left_of_run: int = 0

    def plan(self, total: int) -> None:
        """Say how many steps there are to do at the most, without those that are done."""
        self.total, self._began = total, time.monotonic()
        if self._bar is not None:
            self._task = self._bar.add_task("training", total=total, text="")

    def watch(self, now: Progress) -> None:
        """One step was done. Where the run before ended early, its other steps are struck off."""
        if now.label != self._label:
            self.total = max(0, self.total - self._left_of_run)
            self._label = now.label
        self._passed += 1
        self._left_of_run = now.steps - now.step
        score = "" if now.accuracy is None else f", held out {now.accuracy:.1%}"
        text = f"{now.label}: step {now.step}/{now.steps}, loss {now.loss:.3f}{score}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._passed, total=self.total, text=text)
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

    def close(self) -> None:
        """Take the bar away, so that results can be printed."""
        if self._bar is not None:
            self._bar.stop()


@dataclass(frozen=True, slots=True)
class Training:
    """Where a long run keeps its checkpoint, and how it is told to stop."""

    resume: Path | None
    keep: Path | None
    stop: StopRequest
    live: Live

    @classmethod
    @contextmanager
    def begin(cls, resume: str | None, default: str) -> Iterator[Training]:
        """Run the body with progress and Ctrl-C handled; a stopped run exits with 130.

        ``resume`` names the checkpoint to go on from; a file that does not exist yet is where the
        run will be kept. Without it the checkpoint goes to ``default`` (a new name where that one
        is taken) and is deleted when the body ends, which therefore writes the results too; in a
        folder that cannot be written there is none.
        """
        from configurator.probe.checkpoint import Stopped, stop_on_interrupt

        if resume is None:
            keep, found = _reserve(default), False
        else:
            keep, found = Path(resume), _is_there(Path(resume))
        try:
            with stop_on_interrupt() as stop, Live().shown() as live:
                yield cls(keep if found else None, keep, stop, live)
        except Stopped as stopped:
            where = "nothing is kept"
            if keep is not None:
                again = shlex.quote(str(keep))
                where = f"kept in {keep}: repeat the command with --resume {again}"
            print(
                f"interrupted in {stopped.label} after step {stopped.step}; {where}",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
        except BaseException:
            _say_what_is_left(None if resume else keep)
            raise
        if resume is None and keep is not None:
            keep.unlink(missing_ok=True)


def _reserve(name: str) -> Path | None:
    """A new file in the current folder, numbered where ``name`` is taken; None: none can be made.

    It is made at once, so that of two runs that start together each has its own.
    """
    first = Path(name)
    for path in (first, *(first.with_stem(f"{first.stem}-{i}") for i in range(2, 1000))):
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        except OSError:
            break
        return path
    print(
        f"no {name} can be made here: nothing is kept of a stopped run (--resume FILE names "
        "another place)",
        file=sys.stderr,
    )
    return None


def _is_there(path: Path) -> bool:
    """Whether there is a checkpoint to go on from; says so where there is none yet."""
    from configurator.cli.output import check_writable

    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(f"--resume {path}: not a file in an existing folder")
    check_writable("--resume", path)
    if not path.is_file():
        print(f"{path} does not exist yet: starting anew, kept there", file=sys.stderr)
    return path.is_file()


def _say_what_is_left(keep: Path | None) -> None:
    """After an error: delete a default checkpoint with nothing in it, or name it."""
    if keep is None or not keep.is_file():
        return
    if keep.stat().st_size:
        print(f"what was finished is in {keep}: --resume {keep} goes on", file=sys.stderr)
    else:
        keep.unlink()
