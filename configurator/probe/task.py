"""What a synthetic task is: rows of tokens with some positions whose next token must be known.

Data are made with numpy from a seed, so a row is the same on every device and torch version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configurator.core.errors import unknown

__all__ = ["IGNORE", "Batch", "Rows", "Task", "task"]

IGNORE = -100
"""Label of a position that is not scored (what torch's cross-entropy skips)."""

Rows = NDArray[np.int64]
Batch = tuple[Rows, Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task: its alphabet, its row length, and how rows are made.

    Args:
        name: as the command line names it.
        about: one line for the output.
        vocab_size: tokens are 0 to ``vocab_size - 1``.
        length: tokens in a row.
        make: ``(rng, rows, length, vocab_size)`` to inputs and labels, both (rows, length).
        one_layer_fails: a single layer of attention cannot solve it, so it makes a control.
        rows: rows in a training step that were seen to be enough.
        pools: the tokens that stand for something, by what they are for; all by default. In a
            row the pools take turns.
        reads: how the words of a text become tokens of the pools, where there is more than one.
    """

    name: str
    about: str
    vocab_size: int
    length: int
    make: Callable[[np.random.Generator, int, int, int], Batch]
    one_layer_fails: bool
    rows: int = 32
    pools: tuple[range, ...] = ()
    reads: str = ""

    def train_batch(self, seed: int, step: int, rows: int) -> Batch:
        """Fresh rows for one step: a function of seed and step alone, so a run can resume."""
        rng = np.random.default_rng((1, seed, step))
        return self.make(rng, rows, self.length, self.vocab_size)

    def held_out(self, seed: int, rows: int, *, final: bool = False) -> Batch:
        """Rows from a stream that training never draws from.

        ``final`` is a second such stream: the first decides when to stop, so the accuracy that is
        reported comes from rows that decided nothing.
        """
        rng = np.random.default_rng((3 if final else 2, seed))
        return self.make(rng, rows, self.length, self.vocab_size)

    def chance(self) -> float:
        """Accuracy of guessing a token blindly."""
        return 1.0 / self.vocab_size


def task(name: str) -> Task:
    """The task of that name; raises ``UsageError`` with the nearest names for another one."""
    # Imported here: each task module takes its types from this one.
    from configurator.probe import copy, induction, recall

    known = {t.name: t for t in (induction.TASK, recall.TASK, copy.TASK)}
    if name not in known:
        raise unknown("task", name, known, hint=f"known: {', '.join(known)}")
    return known[name]
