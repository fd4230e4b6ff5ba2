"""Recall: eight pairs of key and value, then some of the keys again; each must give its value.

Multi-query associative recall after Arora et al. 2023 ("Zoology", arXiv 2312.04927), small: the
queries stand at random places among blanks, so position says nothing about the answer.
"""

from __future__ import annotations

import numpy as np

from configurator.probe.task import IGNORE, Batch, Task

__all__ = ["PAIRS", "TASK", "make"]

PAIRS = 8
BLANK = 0


def make(rng: np.random.Generator, rows: int, length: int, vocab_size: int) -> Batch:
    """``k1 v1 ... k8 v8`` and then the keys again in any order and place, blanks between.

    Keys are distinct and come from the lower half of the alphabet, values from the upper half.
    Only the places where a key is asked for are scored.
    """
    half = vocab_size // 2
    keys = rng.permuted(np.tile(np.arange(1, half), (rows, 1)), axis=1)[:, :PAIRS]
    values = rng.integers(half, vocab_size, size=(rows, PAIRS))
    tokens = np.full((rows, length), BLANK)
    labels = np.full((rows, length), IGNORE)
    tokens[:, 0 : 2 * PAIRS : 2] = keys
    tokens[:, 1 : 2 * PAIRS : 2] = values
    free = np.tile(np.arange(2 * PAIRS, length), (rows, 1))
    places = rng.permuted(free, axis=1)[:, :PAIRS]
    np.put_along_axis(tokens, places, keys, axis=1)
    np.put_along_axis(labels, places, values, axis=1)
    return tokens, labels


TASK = Task(
    name="recall",
    about="8 pairs of key and value, then the keys at random places; each gives its value",
    vocab_size=64,
    length=2 * PAIRS + 16,
    make=make,
    one_layer_fails=True,
    # With 64 rows MQA stayed at one in eight for 500 steps; with 128 it learns in 300.
    rows=128,
    pools=(range(1, 32), range(32, 64)),
    reads="words that first stand at an odd place are keys, the others values",
)
