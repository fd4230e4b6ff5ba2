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
from configurator.probe import copy, hook, induction
from configurator.probe.document import curve_svg, document
from configurator.probe.hook import ProbeResult, _verdict
from configurator.probe.shrink import as_it_is, attention_of, describe, shrink
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
    slower = replace(result, seconds=result.seconds + 1000.0)
    assert to_markdown(document(slower)) == text  # no times, so that equal runs give equal text
    drawn = curve_svg(result)
    assert drawn == curve_svg(result)
    assert "1 layer (control), seed 0" in drawn


def test_the_document_draws_the_curve_and_repeats_the_question(result: ProbeResult) -> None:
    text = to_markdown(document(result, "mha-configurator probe --d-model 32"))
    two, one = (line for line in text.splitlines() if "seed 0  " in line)
    reached = next(
        step
        for step, accuracy in zip(result.curve[0]["step"], result.curve[0]["accuracy"], strict=True)
        if accuracy >= 0.95
    )
    assert two.endswith(f"  {reached}")
    assert "█" in two
    assert one.endswith("-")  # the control never reached it
    assert len(one.split("  ")[1]) == 400 // 25  # a bar for each score, up to 24
    assert "within 400 steps" in text
    assert "mha-configurator probe --d-model 32" in text


def test_a_long_curve_is_drawn_in_a_line(result: ProbeResult) -> None:
    steps = list(range(25, 3001, 25))
    curve = result.curve[0] | {"step": steps, "accuracy": [s / 3000 for s in steps]}
    code = document(replace(result, curve=(curve,))).sections[3].code
    assert code == "2 layers, seed 0  ▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇████   2,850"


def test_a_window_or_an_encoder_is_warned_of(result: ProbeResult) -> None:
    chosen = SimpleNamespace(
        projection="GQA", d_model=32, n_heads=2, n_kv_heads=1, d_head=16, v_head_dim=0,
        window=512, arch="encoder",
    )  # fmt: skip
    source = SimpleNamespace(recommendation=chosen, warnings=("its own",))
    warned = probe.run(source, task=INDUCTION, seeds=1, steps=1, device="cpu")
    assert warned.warnings[0] == "its own"
    assert "window is not trained" in warned.warnings[1]
    assert "a causal decoder, though the model asked for is an encoder" in warned.warnings[2]
    assert "window is not trained" in to_markdown(document(warned))
    assert not result.warnings


def test_a_lack_of_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(hook, "build", full)
    with pytest.raises(UsageError, match=r"memory of cpu is too small for MHA.*--shrink trains"):
        probe.run(replace(SMALL, n_kv_heads=2), device="cpu", full_width=True)


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


def test_only_where_one_layer_cannot_it_must_not() -> None:
    assert _verdict(induction.TASK, _run(0.99), _run(0.48), 1).endswith("48.0%, as it must")
    assert _verdict(copy.TASK, _run(0.99), _run(0.48), 1).endswith("one layer stays at 48.0%")


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


ONE_HEAD = GroupedQuery(d_model=256, n_heads=1, n_kv_heads=1, d_head=256)
LOW_RANK = Latent(
    d_model=1024, n_heads=2, kv_lora_rank=64, qk_nope_head_dim=512, qk_rope_head_dim=32,
    v_head_dim=512,
)  # fmt: skip


@pytest.mark.parametrize(
    ("attention", "kept", "words"),
    [
        (ONE_HEAD, {"d_model": 64, "d_head": 64}, "its heads are 64 wide, not 16"),
        (replace(ONE_HEAD, n_heads=2), {"d_model": 64, "d_head": 32}, "32 wide, not 16"),
        (LOW_RANK, {"kv_lora_rank": 16, "qk_rope_head_dim": 8}, "rank is 16, not the 4"),
        (replace(LOW_RANK, n_heads=1), {"kv_lora_rank": 32, "d_model": 64}, "rank is 32, not"),
        (replace(LOW_RANK, n_heads=1), {"qk_rope_head_dim": 16}, "rotary width is 16, not the 4"),
        (replace(DEEPSEEK_V3, q_lora_rank=64), {"q_lora_rank": 16}, "query rank is 16, not the 1"),
        (replace(LLAMA_70B, v_head_dim=16), {"v_head_dim": 8}, "value width is 8, not the 2"),
        (replace(LLAMA_70B, v_head_dim=4096), {"v_head_dim": 64}, "is 64, not the 512"),
        (replace(DEEPSEEK_V3, kv_lora_rank=4096), {"kv_lora_rank": 128}, "is 128, not the 512"),
        (replace(DEEPSEEK_V3, gate_params=9), {"gate_params": 0}, "its gates are left out"),
    ],
)
def test_what_would_be_too_small_to_learn_is_not_cut_and_said(
    attention: GroupedQuery | Latent, kept: dict[str, int], words: str
) -> None:
    small = shrink(attention)
    assert {name: getattr(small.attention, name) for name in kept} == kept
    assert words in small.said


def test_floors_are_never_above_the_original() -> None:
    tiny = Latent(
        d_model=4096, n_heads=2, kv_lora_rank=4, q_lora_rank=3, qk_nope_head_dim=128,
        qk_rope_head_dim=4, v_head_dim=2,
    )  # fmt: skip
    small = shrink(tiny).attention
    assert isinstance(small, Latent)
    assert (small.kv_lora_rank, small.q_lora_rank) == (4, 3)
    assert (small.qk_rope_head_dim, small.v_head_dim) == (4, 2)
    assert shrink(replace(ONE_HEAD, d_model=32)).attention.d_model == 32


@pytest.mark.parametrize(
    "wide",
    [
        GroupedQuery(d_model=128, n_heads=128, n_kv_heads=128, d_head=256),
        GroupedQuery(d_model=64, n_heads=4, n_kv_heads=4, d_head=16, v_head_dim=4096),
        Latent(d_model=128, n_heads=64, kv_lora_rank=32),
        Latent(d_model=128, n_heads=2, kv_lora_rank=8192, qk_nope_head_dim=16, v_head_dim=16),
    ],
)
def test_small_is_judged_by_heads_and_ranks_too(wide: GroupedQuery | Latent) -> None:
    small = shrink(wide)
    assert small.cut
    assert small.attention.params() < 500_000
    again = shrink(small.attention)
    assert not again.cut
    assert "small already, not cut" in again.said


def test_a_description_names_value_width_and_qk_norm() -> None:
    assert describe(replace(SMALL, v_head_dim=8, qk_norm=True)) == (
        "MQA, 2 query and 1 KV heads of 16 (values 8), QK-norm, width 32"
    )
    assert "2 heads of 512+32, rank 64" in describe(LOW_RANK)
    assert "2 heads of 512+32 (values 64), rank 64" in describe(replace(LOW_RANK, v_head_dim=64))


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (GroupedQuery(d_model=960, n_heads=64, n_kv_heads=64, d_head=15), "d-head is 15: rotary"),
        (GroupedQuery(d_model=1, n_heads=1, n_kv_heads=1, d_head=1), "d-head is 1: rotary"),
        (
            Latent(d_model=128, n_heads=1, kv_lora_rank=8, qk_rope_head_dim=7),
            "qk-rope-head-dim is 7: rotary",
        ),
    ],
)
def test_an_odd_rotary_width_is_refused(attention: GroupedQuery | Latent, message: str) -> None:
    for cut in (shrink, as_it_is):
        with pytest.raises(UsageError, match=message):
            cut(attention)
    odd = GroupedQuery(d_model=8160, n_heads=32, n_kv_heads=8, d_head=255)
    assert shrink(odd).attention.d_head == 16  # what is trained can be turned
    with pytest.raises(UsageError, match="d-head is 255"):
        as_it_is(odd)


@pytest.mark.slow
@pytest.mark.parametrize("attention", [ONE_HEAD, LOW_RANK])
def test_few_wide_heads_pass_as_they_do_at_full_width(attention: GroupedQuery | Latent) -> None:
    found = probe.run(attention, task="recall", seeds=1, device="cpu")
    assert found.accuracy >= 0.95


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
        (replace(LLAMA_70B, n_kv_heads=7), "n-heads 64 is not a multiple of n-kv-heads 7"),
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
    with pytest.raises(UsageError, match="seeds is"):
        probe.run(SMALL, seeds=[2**32])
    for name in ("gpu", "cpu:", "cpu:x", "cuda:00", "cuda:" + "9" * 5000):
        with pytest.raises(UsageError, match="unknown device"):
            probe.run(SMALL, device=name)
    with pytest.raises(MissingError, match="cuda:99"):
        probe.run(SMALL, device="cuda:99")
