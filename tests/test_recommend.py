"""The requests an expert team would ask, and what it would expect of the answers."""

from __future__ import annotations

import math
import shlex
from dataclasses import fields

import pytest

from configurator import Request, UsageError, recommend
from configurator.complete import attention_of
from configurator.core.report import Report
from configurator.schema import GeometryRequest


def ask(**request: object) -> Report:
    return recommend(Request(**request)).report


def near(value: float, wanted: float, within: float = 0.25) -> bool:
    return abs(value / wanted - 1.0) <= within


@pytest.mark.parametrize(
    ("request_", "d_model", "n_heads"),
    [
        ({"params": "125M", "context": "2k", "target": "rtx-3060"}, 768, 12),
        ({"params": "350M", "context": "4k", "target": "rtx-4090"}, 1024, 16),
    ],
)
def test_small_models_have_heads_of_64_and_no_mla(request_, d_model, n_heads):
    report = ask(**request_)
    r = report.recommendation
    assert r.d_head == 64
    assert near(r.d_model, d_model)
    assert near(r.n_heads, n_heads)
    labels = [r.projection, *(o.recommendation.projection for o in report.alternatives)]
    assert "MLA" not in labels


def test_1b_is_near_2048_with_16_heads_of_128_and_shares_them():
    r = ask(params="1B", context="8k", target="rtx-4090").recommendation
    assert (r.d_head, r.projection) == (128, "GQA")
    assert near(r.d_model, 2048)
    assert near(r.n_heads, 16)


def test_7b_on_one_h100_gives_limits_in_numbers():
    report = ask(params="7B", context="32k", target="h100-sxm")
    r, c = report.recommendation, report.cache
    assert (r.projection, r.d_head) == ("GQA", 128)
    assert r.n_kv_heads <= 8
    assert c.bytes_per_token == r.n_layers * 2 * r.n_kv_heads * r.d_head * 2
    assert c.bytes_total == c.bytes_per_token * 32768
    assert c.fits is True
    assert c.max_batch is not None
    assert c.max_context is not None
    # One more sequence than the limit must not fit with these KV heads.
    more = ask(
        params="7B",
        context="32k",
        target="h100-sxm",
        batch=c.max_batch + 1,
        d_model=r.d_model,
        n_layers=r.n_layers,
    )
    assert more.recommendation.n_kv_heads < r.n_kv_heads


def test_70b_at_128k_reproduces_llama_3_70b():
    """Llama 3 70B: 80 layers, 64 query and 8 KV heads of 128 (Meta 2024): 320 KiB a token."""
    report = ask(params="70B", context="128k", target="8xh100-sxm", d_model=8192, n_layers=80)
    r = report.recommendation
    assert (r.n_heads, r.n_kv_heads, r.d_head) == (64, 8, 128)
    assert report.cache.bytes_per_token == 327_680
    assert report.cache.bytes_total == 42_949_672_960  # 40 GiB
    mha = next(o for o in report.alternatives if o.recommendation.projection == "MHA")
    assert mha.cache.bytes_per_token == 8 * 327_680
    assert r.n_heads % 8 == r.n_kv_heads % 8 == 0  # tensor parallelism of 8 splits evenly


def test_70b_free_shape_is_near_llama_3_70b():
    r = ask(params="70B", context="128k", target="8xh100-sxm").recommendation
    assert near(r.d_model, 8192)
    assert near(r.n_layers, 80)
    assert (r.n_kv_heads, r.d_head) == (8, 128)


def test_236b_mixture_weighs_mla_with_its_latent_on_every_rank():
    report = ask(
        params="236B", active_params="21B", context="128k", target="8xh200-sxm", batch=8,
        priority="memory",
    )  # fmt: skip
    assert report.recommendation.feed_forward.kind == "moe"
    assert near(report.recommendation.params_active, 21e9, 0.01)
    mla = next(o for o in report.alternatives if o.recommendation.projection == "MLA")
    assert "every rank" in mla.why_not
    assert mla.cache.bytes_total < report.cache.bytes_total  # logically smaller
    assert mla.cache.rank_bytes > report.cache.rank_bytes  # but not on the device
    assert mla.memory.cache_bytes == 8 * mla.cache.bytes_total


@pytest.mark.parametrize("target", ["apple-m3-pro", "snapdragon-8-elite"])
def test_3b_on_things_people_carry(target):
    report = ask(params="3B", context="8k", target=target)
    assert report.recommendation.d_head in (64, 128)
    assert any(r.id.startswith("memory/") for r in report.rules)


def test_encoder_for_training_is_mha_without_a_cache_and_says_so():
    report = ask(params="300M", context=512, arch="encoder", priority="training")
    assert report.recommendation.projection == "MHA"
    assert report.cache.bytes_total == report.cache.bytes_per_token == 0
    assert "no cache" in report.recommendation.reason


def test_a_million_tokens_on_one_rtx_4090_does_not_fit_and_says_what_would():
    report = ask(params="7B", context="1M", target="rtx-4090")
    assert report.fits is False
    text = " ".join(report.remedies)
    for remedy in ("fp8", "KV head", "MLA", "--window", "context of"):
        assert remedy in text


def test_what_a_remedy_promises_holds():
    report = ask(params="7B", context="128k", target="h100-sxm", projection="mha")
    assert report.fits is False
    assert any("with --kv-dtype fp8 it fits" in text for text in report.remedies)
    fp8 = ask(params="7B", context="128k", target="h100-sxm", projection="mha", kv_dtype="fp8")
    assert fp8.fits is True
    reach = next(t for t in report.remedies if t.startswith("a context of"))
    tokens = int(reach.split()[3].replace(",", ""))
    assert tokens == report.cache.max_context
    fits = ask(params="7B", context=tokens, target="h100-sxm", projection="mha")
    assert fits.fits is True


def test_a_remedy_keeps_the_parameter_budget():
    """40 heads as 2 KV heads free 2.2B weights; the feed-forward takes them, so nothing fits."""
    report = ask(
        params="13B", context="64k", projection="mha", kv_dtype="fp8", window=4096, full_every=6,
        memory="24GiB", bandwidth="1000GB/s",
    )  # fmt: skip
    assert [o.cache.fits for o in report.alternatives] == [False] * len(report.alternatives)
    text = " ".join(report.remedies)
    assert "--weight-dtype int8" in text
    assert "KV head" not in text
    assert "--window" not in text  # it was asked for, and does not fit
    assert "fp8" not in text  # likewise


def test_copied_kv_heads_are_said_to_be_copied():
    """8 KV heads on 16 ranks: two copies of each, twice the logical cache in memory."""
    asked = {"params": "700B", "context": "128k", "projection": "gqa"}
    report = ask(**asked, target="16xh200-sxm")
    assert report.recommendation.n_kv_heads == 8
    assert report.memory.cache_bytes == 2 * report.cache.bytes_total
    assert "each is copied on 2 ranks" in report.latency.regime
    report = ask(**asked, target="8xh200-sxm")
    assert "fewer than 8 would be copied on 8 ranks" in report.latency.regime


def test_a_smaller_cache_type_is_smaller():
    report = ask(params="7B", context="1M", target="rtx-4090", kv_dtype="q4_0")
    assert not any("fp8" in text for text in report.remedies)
    report = ask(params="34B", target="rtx-4090", weight_dtype="fp8", kv_dtype="fp8")
    assert any(text.startswith("with --weight-dtype q4_0 it fits") for text in report.remedies)


@pytest.mark.parametrize("params", ["1.5B", "7B", "236B"])
def test_half_the_kv_heads_are_the_alternative_with_half(params):
    report = ask(
        params=params, context="32k", target="8xh200-sxm", tensor_parallel=1,
        active_params="21B" if params == "236B" else None,
    )  # fmt: skip
    kv = report.recommendation.n_kv_heads
    (half,) = [
        o for o in report.alternatives
        if (o.recommendation.projection, o.recommendation.n_kv_heads) == ("GQA", kv // 2)
        and o.recommendation.d_head == report.recommendation.d_head and ":" not in o.label
    ]  # fmt: skip
    (said,) = [w for w in report.why if w.startswith("Halving")]
    assert f"fit {half.cache.max_batch:,} sequences instead of {report.cache.max_batch:,}" in said
    assert f"{1 - half.latency.decode_s / report.latency.decode_s:.0%} shorter" in said


@pytest.mark.parametrize("d_head", [32, 80, 96, 112, 160, 192, 256])
@pytest.mark.parametrize("params", ["50M", "350M", "7B", "70B"])
def test_a_width_of_its_own_choice_is_a_multiple_of_the_head_width(params, d_head):
    found = ask(params=params, d_head=d_head).recommendation
    assert found.d_head == d_head
    assert found.n_heads * d_head == found.d_model
    assert found.d_model % 64 == 0


@pytest.mark.parametrize(
    "request_",
    [
        {"params": "50M"},
        {"params": "1.5B", "active_params": "75M"},
        {"params": "50M", "d_head": 32},
        {"params": "350M", "d_head": "64,96", "target": "4xh100-sxm"},
    ],
)
def test_heads_that_gqa_can_share(request_):
    """The usual width of 448 has 7 heads of 64; GQA alone needs an even number."""
    found = ask(**request_, projection="gqa").recommendation
    assert found.projection == "GQA"
    assert found.n_heads % 2 == 0


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"params": "1B", "d_model": 448, "projection": "gqa"}, "7 heads of 64, whose"),
        ({"params": "7B", "d_head": 256, "projection": "mla"}, "MLA has kernels for heads of 64"),
        ({"params": "50M", "target": "2x8xh100-sxm"}, "or lower --tensor-parallel from 16"),
        (
            {"params": "125M", "target": "2x8xh100-sxm", "tie_embeddings": False},
            "no room for a feed-forward.*or lower --tensor-parallel from 16",
        ),
    ],
)
def test_what_leaves_no_candidate_is_named(request_, says):
    with pytest.raises(UsageError, match=says):
        ask(**request_)


def test_encoder_decoder_keeps_self_and_cross_caches_apart():
    report = ask(params="220M", arch="encoder-decoder", source_len="4k", context=512)
    r, c = report.recommendation, report.cache
    per_token = 2 * r.n_kv_heads * r.d_head * 2 * r.n_layers
    assert c.self_attention_bytes == per_token * 512
    assert c.cross_attention_bytes == per_token * 4096
    assert c.bytes_total == c.self_attention_bytes + c.cross_attention_bytes


def test_mha_beyond_32k_is_answered_with_its_cost_and_offers():
    report = ask(
        params="7B", context="128k", target="h100-sxm", projection="mha", d_model=4096, n_layers=32
    )
    assert (report.recommendation.projection, report.recommendation.n_heads) == ("MHA", 32)
    assert report.cache.bytes_total == 2 * 32 * 32 * 128 * 2 * 131072
    warning = next(r for r in report.rules if r.id == "memory/mha-beyond-32k")
    assert warning.verdict == "broken"
    assert "64 GiB" in warning.message
    offered = {o.recommendation.projection for o in report.alternatives}
    assert {"GQA", "MLA"} <= offered


def test_mla_below_a_billion_needs_benchmarking():
    plain = ask(params="500M", projection="mla", target="h100-sxm")
    assert plain.recommendation.projection != "MLA"
    assert any("--benchmarking" in w for w in plain.warnings)
    assert all(o.recommendation.projection != "MLA" for o in plain.alternatives)
    trying = ask(params="500M", projection="mla", target="h100-sxm", benchmarking=True)
    assert trying.recommendation.projection == "MLA"


def test_a_mixture_larger_than_a_node_is_mla_and_deepseek_sized():
    """DeepSeek-V3: 671B with 37B active, 7,168 wide, rank 512 + 64 (arXiv 2412.19437)."""
    r = ask(
        params="671B", active_params="37B", context="128k", target="2x8xh200-sxm",
        tensor_parallel=1, allow_decoupled_heads=True, d_model=7168, n_layers=61,
    ).recommendation  # fmt: skip
    assert (r.projection, r.kv_lora_rank, r.qk_rope_head_dim) == ("MLA", 512, 64)
    assert r.n_heads in (64, 128)


def test_width_of_1024_keeps_heads_of_64_unless_decoupled():
    assert ask(params="350M", d_model=1024).recommendation.d_head == 64
    r = ask(params="600M", d_model=1024, allow_decoupled_heads=True).recommendation
    assert (r.n_heads, r.d_head) == (16, 128)  # Qwen3 0.6B


def test_shape_with_too_many_parameters_for_dense_is_called_a_mixture():
    """Qwen3 30B-A3B: 48 layers of 2,048."""
    report = ask(params="30B", d_model=2048, n_layers=48)
    assert report.recommendation.feed_forward.kind == "moe"
    assert any("mixture" in w for w in report.warnings)


def test_a_recommendation_says_all_it_must():
    report = ask(params="7B", context="32k", target="h100-sxm")
    assert report.recommendation.reason
    i = report.initialization
    assert math.isclose(i.xavier["q"], math.sqrt(2 / (4096 + 4096)))
    assert math.isclose(i.kaiming["q"], math.sqrt(2 / 4096))
    layers = report.recommendation.n_layers
    assert math.isclose(i.residual_scaled["o"], 0.02 / math.sqrt(2 * layers))
    assert i.bias == "none"
    assert report.test_hook.threshold == 0.95
    assert "probe" in report.test_hook.command
    assert report.alternatives
    assert all(o.why_not for o in report.alternatives)
    sources = {r.source for r in report.rules} | set(report.quality.sources)
    assert len(sources) >= 3
    assert report.precedents
    assert "--params 7000000000" in report.command
    assert {s.input for s in report.sensitivity} >= {"context", "batch", "memory"}


@pytest.mark.parametrize(
    "asked",
    [
        {"params": "7B"},
        {"params": "30B", "projection": "mla"},
        {"params": "671B", "active_params": "37B", "projection": "mla", "target": "8xh200-sxm"},
    ],
)
def test_the_hook_trains_the_attention_that_was_recommended(asked: dict[str, str]):
    report = ask(**asked)
    words = shlex.split(report.test_hook.command)
    assert words[:4] == ["mha-configurator", "probe", "--task", "induction"]
    given = dict(zip(words[4::2], words[5::2], strict=True))
    request = GeometryRequest(
        **{name.removeprefix("--").replace("-", "_"): int(n) for name, n in given.items()}
    )
    trained, chosen = attention_of(request), report.recommendation
    assert trained.projection == chosen.projection
    # v_head_dim 0 means as wide as the keys, which a recommendation writes out.
    names = {f.name for f in fields(trained) if getattr(trained, f.name)} - {"bias", "qk_norm"}
    same = {n: getattr(chosen, n) for n in names if hasattr(chosen, n)}
    if chosen.projection == "MLA":
        assert "q_lora_rank" in same
    assert {n: getattr(trained, n) for n in same} == same


def test_the_printed_command_asks_the_same_question():
    import shlex

    first = ask(params="7B", context="32k", target="h100-sxm", d_head="128", batch=4, top=3)
    words = shlex.split(first.command)[2:]
    again: dict[str, object] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        again[flag.removeprefix("--").replace("-", "_")] = value
    assert ask(**again).recommendation == first.recommendation


def test_sensitivity_is_where_the_answer_flips():
    question = {"params": "7B", "context": "32k", "target": "h100-sxm"}
    report = ask(**question)
    flip = next(s for s in report.sensitivity if s.input == "context" and s.flips_at)
    r = report.recommendation
    fixed = {"d_model": r.d_model, "n_layers": r.n_layers}
    before = ask(**{**question, "context": int(flip.flips_at * 0.98), **fixed}).recommendation
    after = ask(**{**question, "context": flip.flips_at, **fixed}).recommendation
    assert (before.projection, before.n_kv_heads) == (r.projection, r.n_kv_heads)
    assert (after.projection, after.n_kv_heads) != (r.projection, r.n_kv_heads)


def test_latency_priority_never_takes_a_slower_answer_than_balanced():
    question = {"params": "7B", "context": "32k", "target": "h100-sxm", "batch": 10}
    fast, balanced = ask(**question, priority="latency"), ask(**question)
    assert fast.latency.decode_s <= balanced.latency.decode_s


def test_memory_priority_never_takes_more_cache_on_a_device_than_balanced():
    question = {"params": "7B", "context": "32k", "target": "h100-sxm"}
    small, balanced = ask(**question, priority="memory"), ask(**question)
    assert small.cache.rank_bytes <= balanced.cache.rank_bytes
    assert small.quality.penalty_nats <= 0.016


def test_nothing_is_quantised_windowed_or_decoupled_unless_asked():
    report = ask(params="7B", context="1M", target="rtx-4090")
    r = report.recommendation
    assert report.cache.kv_dtype == "bf16"
    assert r.window == 0
    assert r.n_heads * r.d_head == r.d_model


def test_windows_asked_for_are_counted_as_windows():
    report = ask(params="7B", context="128k", target="h100-sxm", window=4096, full_every=6)
    r, c = report.recommendation, report.cache
    full = r.n_layers // 6
    layer = 2 * r.n_kv_heads * r.d_head * 2
    assert c.bytes_total == layer * (full * 131072 + (r.n_layers - full) * 4096)


def test_unverified_figures_are_marked():
    report = ask(params="125M", context="2k", target="rtx-3060")
    assert report.target["verified"] is False
    assert any("not verified" in w for w in report.warnings)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"params": "7B", "target": "h100-smx"}, "h100"),
        ({"params": "1M", "vocab_size": 10**6}, "no room"),
        ({"params": "7B", "d_model": 1000, "d_head": "128"}, "1000"),
        ({"params": "7B", "d_model": 1000}, "1000"),
        ({"params": "7B", "target": "h100-sxm", "tensor_parallel": 8}, "tensor-parallel 8"),
        ({"params": "7B", "target": "8xh100-sxm", "tensor_parallel": 3}, "3"),
        ({"params": "7B", "full_every": 6}, "window"),
        ({"params": "7B", "source_len": 100}, "source-len"),
        ({"params": "7B", "memory": "24GiB"}, "bandwidth"),
        ({"params": "7B", "active_params": "8B"}, "active-params"),
        ({"params": "7B", "d_head": "16"}, "32"),
    ],
)
def test_a_wrong_question_gets_one_line(request_, words):
    with pytest.raises(UsageError) as caught:
        ask(**request_)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
