"""The Pareto front against its definition, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurator.front import pareto


def by_definition(values: np.ndarray) -> list[bool]:
    """On the front: no other row is nowhere higher and somewhere lower."""
    return [
        not any((other <= row).all() and (other < row).any() for other in values.T)
        for row in values.T
    ]


@given(
    costs=st.integers(1, 5),
    rows=st.integers(0, 40),
    values=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
def test_small_grids_with_many_ties(costs: int, rows: int, values: int, seed: int) -> None:
    found = np.random.default_rng(seed).integers(0, values, (costs, rows)).astype(float)
    assert pareto(*found).tolist() == by_definition(found)


@pytest.mark.parametrize("costs", [1, 2, 3, 4])
def test_large_grids_where_most_rows_are_dropped_early(costs: int) -> None:
    found = np.random.default_rng(costs).integers(0, 60, (costs, 1500)).astype(float)
    assert pareto(*found).tolist() == by_definition(found)


@pytest.mark.parametrize("costs", [2, 3])
def test_rows_of_which_none_beats_another_are_all_kept(costs: int) -> None:
    found = np.random.default_rng(0).random((costs - 1, 5000))
    assert pareto(*found, -found.sum(axis=0)).all()


def test_only_the_rows_asked_for() -> None:
    cost = np.array([1.0, 2.0, 3.0])
    assert pareto(cost, among=np.array([False, True, True])).tolist() == [False, True, False]
    assert not pareto(cost, among=np.zeros(3, dtype=bool)).any()


def test_an_unknown_cost_keeps_nobody_out() -> None:
    unknown = np.array([np.nan, np.nan, np.nan])
    assert pareto(np.array([1.0, 2.0, 1.0]), unknown).tolist() == [True, False, True]
    assert pareto(np.array([1.0, 2.0]), np.array([0.5, np.nan])).tolist() == [True, True]


def test_whole_numbers_beyond_32_bits() -> None:
    assert pareto(np.array([2**40, 2**40 + 1]), np.array([1, 1])).tolist() == [True, False]
