"""The test hook: two layers pass, one fails, what was cut is said, nothing is tried again."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from configurator import probe
from configurator.core.errors import MissingError, UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.probe import copy, induction
from configurator.probe.document import curve_svg, document
from configurator.probe.hook import ProbeResult, _verdict
from configurator.probe.shrink import attention_of, shrink
from configurator.probe.train import Run
from configurator.render.markdown import to_markdown

SMALL = GroupedQuery(d_model=32, n_heads=2, n_kv_heads=1, d_head=16)
INDUCTION = replace(induction.TASK, vocab_size=24, length=24)
KEYS = {"task", "accuracy", "steps", "seconds", "control_accuracy", "passed", "curve"}


@pytest.fixture(scope="module")
def result() -> ProbeResult:
    return probe.run(SMALL, task=INDUCTION, seeds=1, steps=400, device="cpu")


def test_two_layers_learn_induction_and_one_layer_does_not(result: ProbeResult) -> None:
    assert result.passed
    assert result.accuracy >= 0.95
    assert result.steps < 400
    # One layer of attention cannot compose "what came before" with "where did I see this".
    assert result.control_accuracy < 0.5
    control = result.curve[-1]
    assert (control["layers"], control["step"][-1]) == (1, 400)  # it had the whole budget


def test_result_has_the_keys_of_the_contract(result: ProbeResult) -> None:
    assert set(result.to_dict()) >= KEYS
    assert [c["layers"] for c in result.curve] == [2, 1]
    assert all(len(c["step"]) == len(c["loss"]) == len(c["accuracy"]) for c in result.curve)


def test_document_and_picture(result: ProbeResult) -> None:
    text = to_markdown(document(result))
    assert f"{result.accuracy:.1%}" in text
    assert "small already, not cut" in text
    assert f"{result.seconds:.1f}" not in text
    drawn = curve_svg(result)
    assert drawn == curve_svg(result)
    assert "1 layer (control), seed 0" in drawn


def test_a_model_that_misses_is_reported_as_such() -> None:
    missed = probe.run(SMALL, task=INDUCTION, seeds=1, steps=3, device="cpu")
    assert not missed.passed
    assert missed.accuracy < 0.95
    assert missed.steps == 3
    assert missed.verdict.startswith("missed: two layers reach")
    assert not document(missed).good


def _run(accuracy: float) -> Run:
    return Run(
        label="x", seed=0, steps=9, seconds=1.0, loss=1.0, accuracy=accuracy, params=1, curve=()
    )


def test_a_control_that_learns_induction_voids_the_result_but_not_that_of_copy() -> None:
    said = _verdict(induction.TASK, _run(0.99), _run(0.99), 1)
    assert said.startswith("missed:")
    assert "did not test what it should" in said
    assert _verdict(copy.TASK, _run(0.99), _run(0.99), 1).startswith("passed:")


LLAMA_70B = GroupedQuery(d_model=8192, n_heads=64, n_kv_heads=8, d_head=128)
DEEPSEEK_V3 = Latent(d_model=7168, n_heads=128, kv_lora_rank=512, q_lora_rank=1536)


@pytest.mark.parametrize(
    ("attention", "kept"),
    [
        (replace(LLAMA_70B, n_kv_heads=64), {"projection": "MHA", "group": 1, "d_head": 16}),
        (LLAMA_70B, {"projection": "GQA", "group": 8, "d_head": 16}),
        (replace(LLAMA_70B, n_kv_heads=16), {"projection": "GQA", "group": 4, "d_head": 16}),
        (replace(LLAMA_70B, n_heads=56), {"projection": "GQA", "group": 7, "d_head": 16}),
        (replace(LLAMA_70B, n_heads=8, n_kv_heads=1), {"projection": "MQA", "group": 8}),
        (replace(LLAMA_70B, qk_norm=True, bias="qkv"), {"qk_norm": True, "bias": "qkv"}),
    ],
)
def test_shrinking_keeps_projection_and_query_heads_per_kv_head(
    attention: GroupedQuery, kept: dict[str, object]
) -> None:
    small = shrink(attention)
    assert {name: getattr(small.attention, name) for name in kept} == kept
    assert 64 <= small.attention.d_model <= 128
    assert str(attention.d_model) in small.said
    assert str(small.attention.d_model) in small.said
    assert "here" not in small.said


def test_full_width_trains_the_geometry_as_it_is() -> None:
    wide = GroupedQuery(d_model=192, n_heads=6, n_kv_heads=3, d_head=32)
    result = probe.run(wide, task=INDUCTION, seeds=1, steps=1, device="cpu", full_width=True)
    assert result.geometry["d_model"] == 192
    assert result.shrunk.endswith("width 192: full width")


def test_a_ratio_that_cannot_be_kept_is_said() -> None:
    falcon = GroupedQuery(d_model=4544, n_heads=71, n_kv_heads=1, d_head=64)
    assert "its 71 query heads per KV head are 8 here" in shrink(falcon).said
    wide = GroupedQuery(d_model=8192, n_heads=64, n_kv_heads=2, d_head=128)
    assert "its 32 query heads per KV head are 16 here" in shrink(wide).said


def test_shrinking_mla_keeps_the_ranks_in_units_of_the_head() -> None:
    small = shrink(DEEPSEEK_V3).attention
    assert isinstance(small, Latent)
    # DeepSeek-V3: rank 4 and rotary 1/2 of the head's 128; query rank 1536 of 7168.
    assert small.kv_lora_rank == 4 * small.qk_nope_head_dim
    assert small.qk_rope_head_dim * 2 == small.qk_nope_head_dim
    assert small.q_lora_rank == round(1536 * small.d_model / 7168)


def test_attention_is_taken_from_reports_and_recommendations() -> None:
    chosen = SimpleNamespace(
        projection="GQA", d_model=4096, n_heads=32, n_kv_heads=8, d_head=128, v_head_dim=0
    )
    expected = GroupedQuery(d_model=4096, n_heads=32, n_kv_heads=8, d_head=128)
    assert attention_of(chosen) == attention_of(SimpleNamespace(recommendation=chosen)) == expected
    latent = SimpleNamespace(
        projection="MLA", d_model=2048, n_heads=16, n_kv_heads=16, d_head=192, kv_lora_rank=512,
        q_lora_rank=0, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
    )  # fmt: skip
    assert attention_of(latent) == Latent(d_model=2048, n_heads=16, kv_lora_rank=512)
    with pytest.raises(UsageError, match="a dict has no attention to train"):
        attention_of({"n_heads": 4})


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (replace(LLAMA_70B, n_kv_heads=7), "n_heads 64 is not a multiple of n_kv_heads 7"),
        (replace(LLAMA_70B, n_kv_heads=0), "n_kv_heads is 0; it must be at least 1"),
        (replace(DEEPSEEK_V3, kv_lora_rank=0), "kv_lora_rank is 0"),
    ],
)
def test_broken_geometries_are_refused(attention: GroupedQuery | Latent, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shrink(attention)


def test_arguments_are_checked_before_training() -> None:
    with pytest.raises(UsageError, match="seeds is 0"):
        probe.run(SMALL, seeds=0)
    with pytest.raises(UsageError, match="steps is 0"):
        probe.run(SMALL, steps=0)
    with pytest.raises(UsageError, match="unknown device 'gpu'"):
        probe.run(SMALL, device="gpu")
    with pytest.raises(MissingError, match="cuda:99"):
        probe.run(SMALL, device="cuda:99")
