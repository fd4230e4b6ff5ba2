"""Published models: their weights and caches, counted from the files, against what was published.

A published integer is independent of the geometry beside it: where the two agree to the last
parameter, widths, heads, biases, norms and tying are all right at once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from configurator.catalog.model_card import PublishedModel, from_table
from configurator.catalog.published import model, model_names, models, nearest_tables, neighbours
from configurator.catalog.store import CATALOG
from configurator.core.case import Case, Workload
from configurator.core.cost import active_params, cache_bytes_per_token_past_window, params_total
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward
from configurator.core.shapes import decoder, geometry

MODELS = models()
COUNTABLE = [m for m in MODELS if m.countable]
# Published integers that include or leave out a few rows: positions (OPT, BART), biases and
# rotary buffers (GPT-J, StableLM 2); DINOv2's total counts its position table twice.
OFF_BY = {
    "bart-large": 2e-5,
    "dinov2-base": 1.3e-2,
    "gpt-j-6b": 5e-4,
    "opt-1.3b": 1e-5,
    "opt-125m": 2e-5,
    "stablelm-2-1.6b": 1e-4,
    "stablelm-2-12b": 1e-4,
}


def _ids(found: PublishedModel) -> str:
    return found.name


def test_how_many_and_of_what() -> None:
    assert Counter(m.arch for m in MODELS) == {
        "decoder": 284, "encoder-decoder": 18, "encoder": 14, "vision": 12,
    }  # fmt: skip
    assert len(COUNTABLE) == 272
    assert len(model_names()) == len(set(model_names())) == len(MODELS)


@pytest.mark.parametrize("found", COUNTABLE, ids=_ids)
def test_weights_add_up_to_the_count_in_the_file(found: PublishedModel) -> None:
    assert params_total(found.shape()) == found.counted_params


@pytest.mark.parametrize("found", [m for m in COUNTABLE if m.params_basis == "exact"], ids=_ids)
def test_a_published_integer_is_met_to_the_last_parameter(found: PublishedModel) -> None:
    off = abs(params_total(found.shape()) / found.published_params - 1)
    if found.name in OFF_BY:
        assert 0 < off < OFF_BY[found.name]
    else:
        assert params_total(found.shape()) == found.published_params


def test_how_many_are_exact() -> None:
    exact = [m for m in COUNTABLE if m.params_basis == "exact"]
    assert len(exact) == 83
    assert sum(m.counted_params == m.published_params for m in exact) == 76


@pytest.mark.parametrize("found", [m for m in COUNTABLE if m.params_basis == "card"], ids=_ids)
def test_a_rounded_card_is_met(found: PublishedModel) -> None:
    """Phi's cards say 1.3B and 2.7B, Phi-3 small 7B, Kimi K2 1T: short figures, rounded more."""
    short = found.name in ("phi-1", "phi-1.5", "phi-2", "phi-3-small", "kimi-k2")
    assert params_total(found.shape()) == pytest.approx(
        found.published_params, rel=0.1 if short else 0.02
    )


def test_names_are_rounded_for_marketing() -> None:
    """Most names are good to 20 %; the exceptions are known, and none is a shape error."""
    named = [m for m in COUNTABLE if m.params_basis == "name"]
    far = {m.name for m in named if abs(m.counted_params / m.published_params - 1) > 0.2}
    assert far == {
        "falcon3-1b", "olmo-2-1b", "granite-3.1-2b", "stablelm-base-alpha-3b", "bitnet-2b-4t",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "params"),
    [  # integers that publishers print for the checkpoints
        ("gpt2", 124_439_808),
        ("llama-2-7b", 6_738_415_616),
        ("llama-3-8b", 8_030_261_248),
        ("mistral-7b-v0.1", 7_241_732_096),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("gemma-2-9b", 9_241_705_984),
        ("gpt-oss-20b", 20_914_757_184),
        ("bloom-176b", 176_247_271_424),
        ("bert-base", 109_482_240),
        ("t5-v1.1-xxl", 11_135_332_352),
        ("whisper-large", 1_543_304_960),
    ],
)
def test_well_known_totals(name: str, params: int) -> None:
    assert params_total(model(name).shape()) == params


@pytest.mark.parametrize(
    ("name", "billions"),
    [("mixtral-8x7b", 12.88), ("deepseek-v3", 37), ("qwen3-235b-a22b", 22), ("deepseek-v2", 21)],
)
def test_active_parameters(name: str, billions: float) -> None:
    assert active_params(model(name).shape()) / 1e9 == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize(
    "found", [m for m in MODELS if m.kv_elements_per_token is not None], ids=_ids
)
def test_cache_elements_per_token(found: PublishedModel) -> None:
    assert found.cache_elements_per_token() == found.kv_elements_per_token


def test_only_decilm_has_no_cache_figure() -> None:
    assert [m.name for m in MODELS if m.kv_elements_per_token is None] == ["decilm-7b"]
    with pytest.raises(UsageError, match="no MHA, GQA, MQA or MLA with one head count"):
        model("decilm-7b").cache_elements_per_token()


@pytest.mark.parametrize("found", [m for m in COUNTABLE if "coder" in m.arch], ids=_ids)
def test_the_core_counts_the_same_cache(found: PublishedModel) -> None:
    """Two bytes an element: the layer groups and the row must tell the same story."""
    case = Case(shape=found.shape(), workload=Workload(context=1024))
    assert cache_bytes_per_token_past_window(case) == 2 * (found.kv_elements_per_token or 0)


@pytest.mark.parametrize(
    ("name", "kib"),
    [  # KiB for each token in 16-bit
        ("llama-3.1-8b", 128),
        ("llama-3.1-70b", 320),
        ("llama-3.1-405b", 504),
        ("qwen1.5-72b", 2560),
        ("qwen3-235b-a22b", 188),
        ("gpt-oss-120b", 36),
        ("deepseek-v3", 68.625),
        ("minicpm3-4b", 34.875),
        ("nemotron-3-nano-30b", 6),
        ("falcon-7b", 8),
    ],
)
def test_well_known_caches(name: str, kib: float) -> None:
    assert model(name).cache_elements_per_token() * 2 / 1024 == kib


@pytest.mark.parametrize("found", MODELS, ids=_ids)
def test_fields_are_plausible(found: PublishedModel) -> None:
    assert found.sources
    assert found.title
    assert 2017 < found.year < 2030
    assert found.params_basis in ("exact", "card", "name", "computed", "")
    assert bool(found.published_params) == bool(found.params_basis)
    if found.n_kv_heads:
        assert found.n_heads % found.n_kv_heads == 0
    assert found.projection in ("MHA", "GQA", "MQA", "MLA", "other")
    if found.projection in ("MHA", "GQA", "MQA") and found.n_kv_heads:
        attention = found.attention()
        assert isinstance(attention, GroupedQuery)
        assert attention.projection == found.projection
    if found.projection == "MLA":
        assert isinstance(found.attention(), Latent)
        assert found.attention().cache_elements() in (288, 576)
    assert found.n_full_layers + found.n_local_layers <= max(found.n_layers, 56)
    assert bool(found.n_local_layers) <= bool(found.sliding_window)
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        if field.type == "int":
            assert isinstance(value, int), field.name
        elif field.type == "bool":
            assert isinstance(value, bool), field.name
        elif field.type == "str":
            assert isinstance(value, str), field.name


def test_every_file_reads_well() -> None:
    for path in (CATALOG / "models").glob("*.toml"):
        text = path.read_text()
        assert text.startswith("# ")
        assert len(text.splitlines()) <= 350, path.name


def test_a_model_by_any_reasonable_name() -> None:
    for text in ("Llama 3.1 8B", "llama-3.1-8b", "meta-llama/Llama-3.1-8B", " LLAMA 3.1 8b "):
        assert model(text).name == "llama-3.1-8b"
    with pytest.raises(UsageError, match=r"unknown model 'llama-3\.1-9b'; nearest: llama-3\.1-8b"):
        model("llama-3.1-9b")
    with pytest.raises(UsageError, match="model is empty"):
        model(" ")


def test_what_cannot_be_counted_says_so() -> None:
    with pytest.raises(UsageError, match=r"jamba-v0\.1: its weights cannot be counted"):
        model("jamba-v0.1").shape()
    assert not model("jamba-v0.1").countable


def test_a_wrong_table_is_named() -> None:
    with pytest.raises(UsageError, match="here: got an unexpected keyword argument 'n_layer'"):
        from_table("x", {"n_layer": 1}, "here")


def test_the_neighbour_of_a_published_shape_is_itself() -> None:
    for name in ("llama-3.1-70b", "qwen3-32b", "deepseek-v3", "mixtral-8x22b", "bert-base"):
        found = neighbours(Case(shape=model(name).shape()), 3)
        assert len(found) == 3
        same = model(found[0].id)
        assert (same.d_model, same.n_layers) == (model(name).d_model, model(name).n_layers)
        assert found[0].source
    nearest = neighbours(Case(shape=model("llama-3.1-70b").shape()), 4)
    shapes = {(p.org, p.d_model, p.n_layers, p.n_heads, p.n_kv_heads) for p in nearest}
    assert len(shapes) == 4  # a lab that repeats a shape counts once


def test_differences_are_in_words() -> None:
    attention = geometry(d_model=4096, n_heads=32, n_kv_heads=4)
    shape = decoder(
        attention,
        n_layers=32,
        feed_forward=FeedForward(d_model=4096, d_ff=14336),
        vocab_size=128256,
    )
    by_id = {p.id: p for p in neighbours(Case(shape=shape), 12)}
    assert by_id["llama-3-8b"].difference == "8 KV heads against 4"


def test_latent_heads_are_compared_without_their_rotary_part() -> None:
    """DeepSeek-V3's heads are 128 wide beside a rotary 64 (its config.json), as recommended."""
    attention = geometry(d_model=7168, n_heads=128, n_kv_heads=8, d_head=128)
    shape = decoder(
        attention,
        n_layers=61,
        feed_forward=FeedForward(d_model=7168, d_ff=2048, n_experts=256, experts_per_token=8),
        vocab_size=129280,
    )
    for case in (Case(shape=shape), Case(shape=model("deepseek-v3").shape())):
        found = [p for p in neighbours(case, 12) if (p.projection, p.d_model) == ("MLA", 7168)]
        assert found
        assert all(p.d_head == 128 and "d_head" not in p.difference for p in found)


def test_mixtures_are_near_mixtures() -> None:
    asked = {"total_params": 236 * 10**9, "d_model": 5120, "n_layers": 60}
    assert nearest_tables(asked, moe=True, n=1)[0][1] == "deepseek-v2"
    assert all("n_experts" not in t for _, _, t in nearest_tables({"d_model": 5120}, moe=False))
