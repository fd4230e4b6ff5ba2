"""Copy: a random segment, a separator, and the same segment again.

The answer always stands the same distance back, so one layer that looks there solves it: the task
tests that attention can carry a token over a distance, not that it can look up content.
"""

from __future__ import annotations

import numpy as np

from configurator.probe.task import IGNORE, Batch, Task

__all__ = ["SEPARATOR", "TASK", "make"]

SEPARATOR = 0


def make(rng: np.random.Generator, rows: int, length: int, vocab_size: int) -> Batch:
    """``segment, separator, segment``; scored from the separator on (tokens may recur)."""
    half = length // 2
    segment = rng.integers(1, vocab_size, size=(rows, half))
    separator = np.full((rows, 1), SEPARATOR)
    tokens = np.concatenate([segment, separator, segment], axis=1)
    labels = np.where(np.arange(2 * half) >= half, tokens[:, 1:], IGNORE)
    return tokens[:, :-1], labels


TASK = Task(
    name="copy",
    about="a random segment, a separator, the segment again",
    vocab_size=64,
    length=64,
    make=make,
    one_layer_fails=False,
    pools=(range(1, 64),),
)
