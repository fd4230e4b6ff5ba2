"""Induction: a random segment repeats; after ``A B ... A`` the model must say ``B``.

It needs two layers: one that writes down what came before each token, and one that looks for the
token it now sees and copies what followed (Olsson et al. 2022, "In-context learning and induction
heads", arXiv 2209.11895). A single attention layer has no way to compose the two.
"""

from __future__ import annotations

import numpy as np

from configurator.probe.task import IGNORE, Batch, Task

__all__ = ["TASK", "make"]


def make(rng: np.random.Generator, rows: int, length: int, vocab_size: int) -> Batch:
    """Rows that repeat a segment of distinct tokens, and the next token where it can be known.

    The period is drawn per row from ``length/4`` to ``length/2``: were it fixed, looking a fixed
    distance back would do, which one layer can. Labels start at the first token seen again.
    """
    longest = length // 2
    periods = rng.integers(max(2, length // 4), longest + 1, size=(rows, 1))
    segments = rng.permuted(np.tile(np.arange(vocab_size), (rows, 1)), axis=1)[:, :longest]
    places = np.arange(length + 1)
    tokens = np.take_along_axis(segments, places % periods, axis=1)
    labels = np.where(places[:-1] >= periods, tokens[:, 1:], IGNORE)
    return tokens[:, :-1], labels


TASK = Task(
    name="induction",
    about="a random segment of 16 to 32 distinct tokens repeats; A B ... A -> B",
    vocab_size=64,
    length=64,
    make=make,
    one_layer_fails=True,
)
