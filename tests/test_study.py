"""The studies: small versions of each run, and answers that follow from the numbers."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.probe.checkpoint import Stopped, StopRequest
from configurator.probe.model import build
from configurator.probe.train import Progress
from configurator.render.json import to_json
from configurator.render.markdown import to_markdown
from configurator.study.absorption import absorption, equal_ways
from configurator.study.corpus import Corpus, pair_bits, python_text, read_corpus
from configurator.study.head_count import study_heads
from configurator.study.mla_answer import largest_rank_under
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


def test_arms_that_learned_nothing_are_not_compared(mqa: Study) -> None:
    study = study_heads(TINY, heads=(1, 16), rows=2)
    for answer_given in (study.answer, mqa.answer):
        assert "nothing was learned" in answer_given
        assert "beyond noise" not in answer_given
    assert not any("noise" in line or "mean loss" in line for line in study.findings)
    assert not any("mean loss" in line for line in mqa.findings)


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
