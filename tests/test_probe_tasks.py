"""The tasks' labels are right: each is checked against the rule that the task states in words."""

from __future__ import annotations

import numpy as np
import pytest

from configurator.core.errors import UsageError
from configurator.probe import copy, induction, recall
from configurator.probe.task import IGNORE, task

NAMES = ("induction", "recall", "copy")


def rows_of(name: str, seed: int = 0, rows: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return task(name).train_batch(seed, 0, rows)


def test_induction_label_is_what_followed_the_earlier_occurrence() -> None:
    tokens, labels = rows_of("induction")
    assert tokens.shape == labels.shape == (40, 64)
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        for i, label in enumerate(wanted):
            earlier = [j for j in range(i) if row[j] == row[i]]
            if label == IGNORE:
                assert not earlier  # nothing to go by, so nothing is asked
            else:
                assert {row[j + 1] for j in earlier} == {label}


def test_induction_period_varies_so_a_fixed_distance_is_no_answer() -> None:
    tokens, _ = rows_of("induction", rows=200)
    periods = {row.index(row[0], 1) for row in tokens.tolist()}
    assert min(periods) == 16
    assert max(periods) == 32
    assert len(periods) == 17


def test_recall_label_is_the_value_shown_with_the_key() -> None:
    tokens, labels = rows_of("recall")
    assert tokens.shape == (40, 32)
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        pairs = dict(zip(row[0:16:2], row[1:16:2], strict=True))
        assert len(pairs) == recall.PAIRS
        asked = {i: label for i, label in enumerate(wanted) if label != IGNORE}
        assert sorted(row[i] for i in asked) == sorted(pairs)  # every key once
        assert all(i >= 16 and pairs[row[i]] == label for i, label in asked.items())
        assert all(row[i] == 0 for i in range(16, 32) if i not in asked)
        assert all(key < 32 <= value for key, value in pairs.items())


def test_copy_label_is_the_segment_again() -> None:
    tokens, labels = rows_of("copy")
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        half = row.index(copy.SEPARATOR)
        assert half == 32
        assert wanted[:half] == [IGNORE] * half
        assert wanted[half:] == row[:half]
        assert row[half + 1 :] == row[: half - 1]


@pytest.mark.parametrize("name", NAMES)
def test_tokens_stay_in_the_alphabet(name: str) -> None:
    tokens, labels = rows_of(name, rows=300)
    known = task(name).vocab_size
    assert tokens.min() >= 0
    assert tokens.max() < known
    assert set(np.unique(labels)) <= {IGNORE, *range(known)}


@pytest.mark.parametrize("name", NAMES)
def test_rows_depend_on_seed_and_step_alone(name: str) -> None:
    chosen = task(name)
    again = [chosen.train_batch(3, 7, 8)[0] for _ in range(2)]
    assert np.array_equal(*again)
    assert not np.array_equal(again[0], chosen.train_batch(3, 8, 8)[0])
    assert not np.array_equal(again[0], chosen.train_batch(4, 7, 8)[0])


@pytest.mark.parametrize("name", NAMES)
def test_held_out_rows_are_never_trained_on(name: str) -> None:
    chosen = task(name)
    seen = {row.tobytes() for step in range(50) for row in chosen.train_batch(0, step, 64)[0]}
    checks, final = (chosen.held_out(0, 256, final=last)[0] for last in (False, True))
    assert not seen & {row.tobytes() for row in (*checks, *final)}
    assert not {row.tobytes() for row in checks} & {row.tobytes() for row in final}


def test_unknown_task_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown task 'inductoin'; nearest: induction"):
        task("inductoin")


def test_a_smaller_induction_task_can_be_made() -> None:
    tokens, labels = induction.make(np.random.default_rng(0), 5, 12, 8)
    assert tokens.shape == (5, 12)
    assert (labels[:, 6:] != IGNORE).all()
