"""Keep what a long run has finished, and pick it up again after Ctrl-C.

One file holds the finished runs and the states of those that were stopped. It is read with torch's
``weights_only`` loader, which accepts tensors and plain values and runs no code from the file.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any
from zipfile import is_zipfile

import torch

from configurator.core.errors import UsageError
from configurator.files import write_whole

__all__ = ["Checkpoint", "StopRequest", "Stopped", "stop_on_interrupt"]

_KIND = "mha-configurator training checkpoint"
_FORMAT = f"{_KIND} 2"


class Stopped(KeyboardInterrupt):
    """A run was asked to stop and its state is kept; ``path`` says where (None: nowhere)."""

    def __init__(self, path: Path | None, label: str, step: int) -> None:
        super().__init__(f"stopped in {label} after step {step}")
        self.path, self.label, self.step = path, label, step


class StopRequest:
    """Whether somebody asked for a stop; the training loop looks between two steps."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def stop_on_interrupt() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C into a request, so that no step is cut in half; the second one kills.

    Outside the main thread signals cannot be caught, and the request is never set.
    """
    request = StopRequest()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        if request.requested:
            raise KeyboardInterrupt
        request.requested = True

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:
        yield request
        return
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, before)


class Checkpoint:
    """Finished runs by name, and unfinished ones; on disk only when there is a ``path``.

    Args:
        path: the file; None keeps everything in memory.
        settings: what the runs depend on. A file made with other settings is refused, so that
            two different experiments are never mixed.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = dict(settings)
        self.finished: dict[str, dict[str, Any]] = {}
        self.unfinished: dict[str, dict[str, Any]] = {}

    @classmethod
    def resume(cls, path: Path, settings: Mapping[str, Any]) -> Checkpoint:
        """Read ``path``; raises ``UsageError`` where it is not such a file or of another run."""
        content = _read(path)
        kept = cls(path, settings)
        for name, value in kept.settings.items():
            made = repr(content["settings"].get(name))
            if made != repr(value):
                raise UsageError(
                    f"--resume {path} was made with {name}={made}, this run has {value!r}; "
                    "repeat the first command's options or start a new file"
                )
        kept.finished, kept.unfinished = content["finished"], content["unfinished"]
        return kept

    def steps_left(self, label: str, steps: int) -> int:
        """How many of ``steps`` run ``label`` has before it: none where it is finished."""
        if label in self.finished:
            return 0
        done = self.unfinished.get(label, {}).get("step", 0)
        return max(0, steps - done) if isinstance(done, int) else steps

    def finish(self, label: str, result: dict[str, Any]) -> None:
        """Record a finished run (plain values only) and forget its state."""
        self.finished[label] = result
        self.unfinished.pop(label, None)
        self.write()

    def write(self) -> None:
        """Put it on disk, whole or not at all."""
        if self.path is None:
            return
        content = {
            "format": _FORMAT,
            "settings": self.settings,
            "finished": self.finished,
            "unfinished": self.unfinished,
        }
        packed = BytesIO()
        torch.save(content, packed)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, packed.getvalue())


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"--resume {path}: no such file; leave --resume out to start anew")
    # Anything that torch's own format, a zip, cannot hold is refused before it is parsed.
    content: Any = None
    if is_zipfile(path):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # however it is broken, it is not ours
            content = None
    made = content.get("format") if isinstance(content, dict) else None
    if isinstance(made, str) and made.startswith(_KIND) and made != _FORMAT:
        raise UsageError(f"--resume {path} is of another version of this program; start a new file")
    if not _is_ours(content):
        raise UsageError(f"--resume {path} is not a checkpoint of this program")
    found: dict[str, Any] = content
    return found


def _is_ours(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and content.get("format") == _FORMAT
        and isinstance(content.get("settings"), dict)
        and all(_is_named(content.get(name)) for name in ("finished", "unfinished"))
    )


def _is_named(runs: Any) -> bool:
    """Whether it is dictionaries by name; what stands in them is checked where it is used."""
    return isinstance(runs, dict) and all(
        isinstance(name, str) and isinstance(run, dict) for name, run in runs.items()
    )
