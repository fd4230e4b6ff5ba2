"""What a study says follows from its numbers, and from no more than they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from configurator.probe.train import Run
from configurator.study.bands import differ, error
from configurator.study.head_count import judge, late
from configurator.study.mla_answer import answer, findings


def spread_around(mean: float) -> list[float]:
    return [mean - 0.01, mean, mean + 0.01]


@pytest.mark.parametrize(
    ("means", "says"),
    [
        ({1: 1.0, 2: 0.5, 4: 0.2}, "more heads help up to 4 (d_head 16); none tried hurts."),
        (
            {1: 0.2, 2: 0.2, 4: 0.9, 8: 1.5},
            "no gain from more heads is seen; from 1 to 2 (d_head 64 to 32) the curve is flat, "
            "lowest with 1; from 4 on (d_head 16 and below) they hurt: they learn later.",
        ),
        (
            {1: 0.9, 2: 0.2, 4: 0.19, 8: 1.5},
            "more heads help up to 2 (d_head 32); from 2 to 4 (d_head 32 to 16) the curve is flat, "
            "lowest with 4; from 8 on (d_head 8 and below) they hurt: they learn later.",
        ),
        (
            {1: 0.2, 2: 0.2, 4: 0.2},
            "no gain from more heads is seen; from 1 to 4 (d_head 64 to 16) the curve is flat, "
            "lowest with 1; none tried hurts.",
        ),
        (
            {1: 0.2, 2: 0.9, 4: 0.2},
            "no gain from more heads is seen; from 1 to 4 (d_head 64 to 16) the curve is flat, "
            "lowest with 1, but 2 in between came out worse, which is not explained here; none "
            "tried hurts.",
        ),
        (
            {1: 0.2, 2: 0.9},
            "no gain from more heads is seen; from 2 on (d_head 32 and below) they hurt: they "
            "learn later.",
        ),
    ],
)
def test_head_counts_are_judged_by_their_losses(means: dict[int, float], says: str) -> None:
    assert judge({h: spread_around(m) for h, m in means.items()})[0] == says


def test_each_doubling_is_judged() -> None:
    said = judge({h: spread_around(m) for h, m in {1: 1.0, 2: 0.5, 4: 0.505, 8: 2.0}.items()})
    assert [s.split(" (")[1].split(": ")[0] for s in said[1:]] == [
        "d_head 64 to 32) helps",
        "d_head 32 to 16) makes no difference beyond noise",
        "d_head 16 to 8) hurts",
    ]


def test_one_seed_cannot_tell_a_difference() -> None:
    assert judge({1: [1.0], 2: [0.1]})[0].startswith("one seed cannot tell")


def test_a_seed_that_did_not_get_there_is_named() -> None:
    runs = {
        1: [run_of(0, 1.0), run_of(1, 0.4)], 2: [run_of(0, 1.0)], 4: [run_of(0, 0.1)],
    }  # fmt: skip
    (said,) = late(runs)
    assert "with 1 head, 1 of 2 seeds had not learned" in said
    assert "40.0% with seed 1" in said


def run_of(seed: int, accuracy: float) -> Run:
    return Run(
        label="", seed=seed, steps=1, seconds=1.0, loss=1.0, accuracy=accuracy, params=1, curve=()
    )


def test_a_difference_must_exceed_the_seeds_noise() -> None:
    wide, narrow = [[1.0, 2.0], [1.4, 2.4]], [[1.0, 1.01], [1.4, 1.41]]
    assert differ(*wide) == 0
    assert differ(*narrow) == 1
    assert differ(narrow[1], narrow[0]) == -1
    assert differ([1.0, 1.0], [1.01, 1.01]) == 0  # certain, and too small to matter
    assert differ([1.0, 1.0], [1.1, 1.1]) == 1


@given(
    st.lists(st.floats(0.5, 2), min_size=2, max_size=6),
    st.lists(st.floats(0.5, 2), min_size=2, max_size=6),
)
def test_differences_are_those_of_welch_s_test(a: list[float], b: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    told = differ(a, b)
    assert told == -differ(b, a)
    if told and min(np.ptp(a), np.ptp(b)) > 1e-3:
        # Whole degrees of freedom, rounded down, can only make ours the more careful of the two.
        assert stats.ttest_ind(a, b, equal_var=False).pvalue < 0.05


def rank_table(over: dict[int, float], error: float = 0.0) -> list[dict[str, object]]:
    rows = [
        {
            "kv_lora_rank": 0,
            "cache_share": 1.0,
            "bits_over_mha": {"mean": 0.0},
            "bits_over_mha_error": 0.0,
            "bits_per_byte": {"mean": 2.0},
        }
    ]
    return rows + [
        {
            "kv_lora_rank": r,
            "cache_share": (r + 8) / 256,
            "bits_over_mha": {"mean": bits},
            "bits_over_mha_error": error,
        }
        for r, bits in over.items()
    ]


def test_whether_cache_and_loss_meet_is_read_from_the_table() -> None:
    assert answer(rank_table({8: 1.4, 16: 0.6, 23: 0.3, 64: 0.0}), 3.5) == (
        "The cache is under 1/8 of MHA's up to rank 23 (23 + 8 rotary values); the loss is within "
        "1 bit of MHA from rank 16 on, so the two meet: at rank 23 MLA holds 12.1% of MHA's cache "
        "at +0.300 +- 0.000 bits per byte."
    )
    apart = answer(rank_table({8: 3.0, 23: 1.4, 64: 0.6}), 3.5)
    assert apart.endswith("from rank 64 on: the two do not meet.")
    # Where the smallest rank tried is near, a smaller one may be too; only rank 1 is the end.
    assert "from rank 8 on, the smallest tried, so the two meet" in answer(
        rank_table({8: 0.9}), 3.5
    )
    assert "from rank 1 on, so the two meet" in answer(rank_table({1: 0.9}), 3.5)
    # A rank that is near by luck, with a larger one that is not, does not count.
    lucky = answer(rank_table({8: 0.9, 16: 1.1, 23: 0.5}), 3.5)
    assert "within 1 bit of MHA from rank 23 on" in lucky
    assert answer(rank_table({8: 3.0}), 3.5).endswith("no rank tried stays within 1 bit of MHA.")


def test_bounds_that_the_seeds_cannot_decide_are_named() -> None:
    table = rank_table({1: 0.6, 8: 0.12, 16: 0.07, 64: 0.01}, error=0.03)
    for row in table:
        row["cache_elements"] = 256
    first, wide, middle, tight, meaning, _ = findings(table, 3.5)
    assert "scores 3.500" in first
    assert wide.endswith("meets the eighth")
    assert "from rank 16 on (+0.070 +- 0.030 bits" in middle
    assert middle.endswith("read from means: the seeds do not decide rank 8, 16")
    assert "95 % interval" in meaning
    assert tight.endswith("meet the eighth; read from means: the seeds do not decide rank 64")


def test_a_rank_that_is_near_below_one_that_is_not_is_no_bound() -> None:
    table = rank_table({23: 0.05, 64: 0.01, 128: 0.04})
    for row in table:
        row["cache_elements"] = 256
    tight = findings(table, 3.5)[3]
    assert "not every rank from one on; the nearest is rank 64 (+0.010" in tight
    for row in table[1:]:
        row["bits_over_mha"] = {"mean": 0.05}
    assert "no rank tried; the nearest is rank 23 (+0.050" in findings(table, 3.5)[3]


def test_models_no_better_than_byte_pairs_have_no_bounds() -> None:
    table = rank_table({8: 0.0, 23: -0.04})
    for row in table:
        row["cache_elements"] = 256
    said = answer(table, 1.9)
    assert "nothing can be said: MHA reaches 2.000 bits per byte, no better than a table" in said
    assert "meet" not in said
    assert not any("within" in line for line in findings(table, 1.9))


def test_arms_between_and_arms_whose_seeds_disagree_are_said() -> None:
    losses = {
        1: [1.0, 1.1, 3.0], 2: [1.0, 1.1, 1.2], 4: [1.1, 1.2, 1.3], 8: [1.25, 1.35, 1.45],
        16: [3.0, 3.1, 3.2],
    }  # fmt: skip
    said = judge(losses, unsure=[1])[0]
    assert said == (
        "no gain from more heads is seen; from 2 to 4 (d_head 32 to 16) the curve is flat, lowest "
        "with 2; 8 may be either: worse than 2 heads, not than all of those; with 1 the seeds "
        "disagree; from 16 on (d_head 4 and below) they hurt: they learn later."
    )
    assert judge({1: [1.0, 9.0], 2: [1.0, 1.1]}, unsure=[1])[0].startswith("the seeds disagree")


def test_the_error_of_a_mean_is_student_s() -> None:
    # Three values with deviation 1: 4.303 / sqrt(3); one has none.
    assert error([1.0, 2.0, 3.0]) == pytest.approx(2.4843, abs=1e-3)
    assert error([1.0]) is None
