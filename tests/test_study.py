"""The studies: small versions of each run, and answers that follow from the numbers."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.probe.checkpoint import Stopped, StopRequest
from configurator.probe.model import build
from configurator.probe.train import Progress, Run
from configurator.render.json import to_json
from configurator.render.markdown import to_markdown
from configurator.study.absorption import absorption, equal_ways
from configurator.study.bands import differ, error
from configurator.study.corpus import Corpus, pair_bits, python_text, read_corpus
from configurator.study.head_count import judge, late, study_heads
from configurator.study.mla_answer import answer, findings, largest_rank_under
from configurator.study.mla_rank import ranks, study_mla_rank
from configurator.study.mqa import CONTEXT, attention_params, cached, study_mqa
from configurator.study.result import Study
from configurator.study.sweep import Effort

TINY = Effort(seeds=(0, 1), steps=2, device="cpu")


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    rng = np.random.default_rng(0)
    path.write_bytes(rng.integers(32, 127, size=100_000, dtype=np.uint8).tobytes())
    return path


@pytest.fixture(scope="module")
def mqa() -> Study:
    return study_mqa(TINY, n_heads=4, rows=2)


@pytest.fixture(scope="module")
def small() -> Study:
    return study_mqa(TINY, n_heads=4, rows=2, count_at=16)


@pytest.fixture(scope="module")
def mla(text_file: Path) -> Study:
    return study_mla_rank(TINY, corpus=text_file, sweep_ranks=(4, 23, 24), rows=1, count_at=64)


# Counted on what was built, equal to the core's counts


def test_mqa_counts_parameters_on_modules_and_cache_on_tensors(mqa: Study) -> None:
    assert [(r["name"], r["n_kv_heads"]) for r in mqa.rows] == [
        ("MHA", 4),
        ("GQA-2", 2),
        ("MQA", 1),
    ]
    for row in mqa.rows:
        core = GroupedQuery(d_model=64, n_heads=4, n_kv_heads=row["n_kv_heads"], d_head=16)
        assert row["params_attention"] == 2 * core.params()
        assert row["cache_bytes_fp16"] == 2 * 2048 * core.cache_bytes(cache_type("fp16"))
    # Width 64: Q and O 4096 each, K and V 4096 each for MHA and 1024 each for MQA; two layers.
    assert [r["params_attention"] for r in mqa.rows] == [32768, 24576, 20480]
    # 2 layers x 2048 tokens x 2 x 64 values x 2 bytes
    assert mqa.rows[0]["cache_bytes_fp16"] == 1_048_576
    assert mqa.rows[2]["cache_share"] == 0.25
    assert "4 times less" in mqa.answer


def test_mla_cache_counts_the_rotary_part(mla: Study) -> None:
    by_rank = {row["kv_lora_rank"]: row for row in mla.rows}
    assert by_rank[0]["cache_elements"] == 2 * 8 * 16
    assert by_rank[23]["cache_elements"] == 23 + 8
    assert by_rank[23]["cache_bytes_fp16"] == 2 * 64 * 31 * 2
    assert by_rank[23]["cache_share"] < 1 / 8 == by_rank[24]["cache_share"]
    assert "up to rank 23 (23 + 8 rotary values)" in mla.answer
    for rank in (4, 23):
        latent = Latent(
            d_model=128, n_heads=8, kv_lora_rank=rank, qk_nope_head_dim=16, qk_rope_head_dim=8,
            v_head_dim=16,
        )  # fmt: skip
        assert by_rank[rank]["params_attention"] == 2 * latent.params()


def test_counting_by_hand_of_one_model() -> None:
    model = build(
        GroupedQuery(d_model=32, n_heads=4, n_kv_heads=2, d_head=8), layers=3, vocab_size=8
    )
    assert attention_params(model) == 3 * 32 * 8 * (4 + 2 + 2 + 4)
    assert cached(model, torch.float32, context=10) == 3 * 10 * 2 * 2 * 8 * 4
    assert CONTEXT == 2048


def test_largest_rank_is_where_the_cache_is_really_under_the_share() -> None:
    # Under 1/8 of 2 * 8 * 16 = 256 values is at most 31, of which 8 are rotary.
    assert largest_rank_under(1 / 8) == 23
    assert (23 + 8) / 256 < 1 / 8 <= (24 + 8) / 256
    assert largest_rank_under(1 / 8, n_heads=128, d_head=128) == 4096 - 8 - 1
    assert 23 in ranks()
    assert min(ranks()) == 1, "the smallest rank within a bound must not be an end of the sweep"


def test_absorption_by_hand() -> None:
    latent = Latent(
        d_model=128, n_heads=8, kv_lora_rank=23, qk_nope_head_dim=16, qk_rope_head_dim=8,
        v_head_dim=16,
    )  # fmt: skip
    first, second = absorption(latent, context=1000)
    rebuilt = 1000 * 2 * 23 * 8 * (16 + 16)
    narrow = 1000 * 2 * 8 * (24 + 16)
    wide = 1000 * (2 * 8 * (23 + 8) + 2 * 8 * 23)
    assert f"{(rebuilt + narrow) / wide:.1f} times fewer" in first
    assert f"{rebuilt:.3g} to rebuild" in first
    assert "31,000 values" in second
    assert "264,000" in second  # 8 heads x (16 + 16), and the one rotary key of 8


def test_absorbed_and_expanded_agree_on_a_model() -> None:
    latent = Latent(
        d_model=32, n_heads=2, kv_lora_rank=6, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8
    )
    said = equal_ways(build(latent, layers=1, vocab_size=70), context=12)
    gaps = [float(word) for word in said.replace(",", "").split() if "e-" in word]
    assert len(gaps) == 2
    assert max(gaps) < 1e-4


# Answers follow from the numbers


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


def test_arms_that_learned_nothing_are_not_compared(mqa: Study) -> None:
    study = study_heads(TINY, heads=(1, 16), rows=2)
    for answer_given in (study.answer, mqa.answer):
        assert "nothing was learned" in answer_given
        assert "beyond noise" not in answer_given
    assert not any("noise" in line or "mean loss" in line for line in study.findings)
    assert not any("mean loss" in line for line in mqa.findings)


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


def test_the_command_given_runs_the_same_study_again(mla: Study, mqa: Study) -> None:
    assert Effort().command("heads") == "mha-configurator study heads"
    assert mqa.command == "mha-configurator study mqa --steps 2 --seeds 0,1 --device cpu"
    assert "--ranks 4,23,24" in mla.command
    assert "text.txt" in mla.command
    spaced = Effort(device="cuda").command("mla-rank", corpus=Path("a b.txt"))
    assert spaced == "mha-configurator study mla-rank --corpus 'a b.txt' --device cuda"


# The corpus


def test_a_table_of_byte_pairs_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "ab.txt"
    path.write_bytes(b"ab" * 50_000)
    corpus = read_corpus(path)
    n = len(corpus.train) // 2  # a is followed by b, and b by a; add-one over 256 bytes
    expected = -np.log2((n + 1) / (n + 256))
    assert pair_bits(corpus) == pytest.approx(expected, rel=1e-3)


def test_default_text_is_python_s_own_and_held_out_text_is_new() -> None:
    corpus = read_corpus(context=128)
    assert "pydoc_data" in corpus.name
    assert len(corpus.train) > 250_000
    share = (len(corpus.checks) + len(corpus.final)) / len(corpus.train)
    assert 0.09 < share < 0.13
    # Whole sections stand under several topics; without dropping repeats a third would leak.
    assert corpus.repeated_share < 0.06
    assert python_text() == python_text()


def test_windows_come_from_their_own_part_and_labels_are_the_next_byte(text_file: Path) -> None:
    corpus = read_corpus(text_file, context=32)
    parts = {
        "train": corpus.train_batch(0, 0, 20), "checks": corpus.held_out(0, 20),
        "final": corpus.held_out(0, 20, final=True),
    }  # fmt: skip
    for name, (tokens, labels) in parts.items():
        part = getattr(corpus, name).tobytes()
        assert np.array_equal(tokens[:, 1:], labels[:, :-1])
        assert all(bytes(row.tolist()) in part for row in tokens.astype(np.uint8))
    held = corpus.checks.tobytes() + corpus.final.tobytes()
    assert not any(bytes(row.tolist()) in held for row in parts["train"][0].astype(np.uint8))


def test_repeated_lines_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "same.txt"
    path.write_text("the same line of more than forty letters, again and again\n" * 3000)
    assert read_corpus(path).repeated_share > 0.98


def test_a_text_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("too short")
    with pytest.raises(UsageError, match="has 9 bytes; at least 81920"):
        read_corpus(short)
    with pytest.raises(UsageError, match="No such file"):
        read_corpus(tmp_path / "absent.txt")


# Running, stopping, writing


def test_heads_study_runs_and_has_all_arms() -> None:
    study = study_heads(TINY, heads=(1, 16), rows=2)
    assert [(r["task"], r["n_heads"], r["d_head"]) for r in study.rows] == [
        ("copy", 1, 64), ("copy", 16, 4), ("induction", 1, 64), ("induction", 16, 4),
    ]  # fmt: skip
    assert {r["params_attention"] for r in study.rows} == {4 * 64 * 64}
    assert len(study.runs) == 8
    assert study.answer.startswith("Copy: ")
    with pytest.raises(UsageError, match="heads 3 do not divide the width of 64"):
        study_heads(TINY, heads=(3, 4))
    with pytest.raises(UsageError, match="nothing to compare with"):
        study_heads(TINY, heads=(4,))


@pytest.mark.parametrize("name", ["mqa", "mla"])
def test_results_can_be_written_and_do_not_change(
    name: str, request: pytest.FixtureRequest
) -> None:
    study: Study = request.getfixturevalue(name)
    document = json.loads(to_json(study.to_dict()))
    assert document["seeds"] == [0, 1]
    assert {"torch", "numpy", "python"} <= set(document["environment"])
    assert len(document["runs"]) == 2 * len(study.rows)
    text = to_markdown(study.document())
    assert study.command in text
    assert study.to_svg() == study.to_svg()
    assert "Date" not in study.to_svg()


def test_same_settings_same_figures(small: Study) -> None:
    assert study_mqa(TINY, n_heads=4, rows=2, count_at=16).rows == small.rows


def test_a_stopped_sweep_goes_on_and_ends_the_same(small: Study, tmp_path: Path) -> None:
    path = tmp_path / "sweep.checkpoint"
    stop = StopRequest()
    seen: list[str] = []

    def watch(now: Progress) -> None:
        seen.append(now.label)
        stop.requested = len(seen) == 5

    with pytest.raises(Stopped):
        study_mqa(replace(TINY, keep=path, stop=stop, watch=watch), n_heads=4, rows=2, count_at=16)
    done: list[str] = []
    planned: list[int] = []
    resumed = study_mqa(
        replace(TINY, resume=path, plan=planned.append, watch=lambda now: done.append(now.label)),
        n_heads=4,
        rows=2,
        count_at=16,
    )
    assert resumed.rows == small.rows
    assert planned == [len(done)]  # finished steps are not announced again
    assert len(seen) + len(done) == 3 * 2 * 2  # arms x seeds x steps: nothing was done twice
    with pytest.raises(UsageError, match="was made with"):
        study_mqa(replace(TINY, resume=path, steps=9), n_heads=4, rows=2)


def test_corpus_is_frozen(text_file: Path) -> None:
    assert isinstance(read_corpus(text_file), Corpus)
    assert not read_corpus(text_file).train.flags.writeable
