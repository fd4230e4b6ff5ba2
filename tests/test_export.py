"""Exports: what is written is the geometry, what cannot be written is refused, in each format."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from configurator.api import geometry_case
from configurator.core.case import Case, Workload
from configurator.core.cost import params_total
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward, ModelShape
from configurator.core.shapes import decoder
from configurator.interop.audit import audit
from configurator.interop.export import (
    Exported,
    RanksError,
    export,
    export_case,
    formats,
    in_order,
    subject_from,
)
from configurator.interop.huggingface.reading import read_shape
from configurator.schema import GeometryRequest

D, LAYERS = 64, 7
DENSE = FeedForward(d_model=D, d_ff=96)
MIXTURES = {
    "unshared": FeedForward(d_model=D, d_ff=32, n_experts=8, experts_per_token=2),
    "shared": FeedForward(d_model=D, d_ff=32, n_experts=8, experts_per_token=2, shared_d_ff=64),
}

WINDOWS: tuple[dict[str, int], ...] = (
    {}, {"window": 8, "full_every": 0}, {"window": 8, "full_every": 3},
)  # fmt: skip


def gqa(kv: int = 2, **more: Any) -> GroupedQuery:
    return GroupedQuery(d_model=D, n_heads=8, n_kv_heads=kv, d_head=16, **more)


def mla(**more: Any) -> Latent:
    return Latent(d_model=D, n_heads=4, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8,
                  v_head_dim=16, **more)  # fmt: skip


def model(attention: Any, ff: FeedForward = DENSE, n_dense: int = 0, **more: Any) -> ModelShape:
    shape = decoder(attention, n_layers=LAYERS, feed_forward=ff, vocab_size=128, **more)
    if not n_dense:
        return shape
    group = shape.groups[0]
    front = replace(group, count=n_dense, feed_forward=DENSE)
    return replace(shape, groups=(front, replace(group, count=LAYERS - n_dense)))


def done(shape: ModelShape, to: str = "huggingface", **work: Any) -> Exported:
    return export_case(Case(shape=shape, workload=Workload(context=4096, **work)), to)


def possible(shape: ModelShape) -> Exported | None:
    """The configuration, or nothing where one clear line says that there is none."""
    try:
        return done(shape)
    except UsageError as error:
        text = str(error)
    if "cannot express" not in text or "\n" in text:
        raise AssertionError(text)
    return None


def weights_of(found: Exported) -> int:
    """The parameters of the class of transformers that a configuration names."""
    import torch
    import transformers

    values = dict(found.values)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        network = getattr(transformers, found.values["architectures"][0])(config)
    return sum(p.numel() for p in network.parameters())


def every_shape() -> Iterator[ModelShape]:
    feeds = (DENSE, *MIXTURES.values())
    norms = (False, True)
    for kv, qk, bias, window, ff, tied in itertools.product(
        (8, 2, 1), norms, ("none", "qkv", "all"), WINDOWS, feeds, norms
    ):
        yield model(gqa(kv, qk_norm=qk, bias=bias), ff, tied=tied, **window)
    for rank, ff in itertools.product((0, 24), feeds):
        yield model(mla(q_lora_rank=rank), ff)
        yield model(mla(q_lora_rank=rank, index_head_dim=32, index_n_heads=2), ff)
        if ff is not DENSE:
            yield model(mla(q_lora_rank=rank), ff, n_dense=2)
            yield model(gqa(qk_norm=True), ff, n_dense=1)


def test_every_geometry_comes_back_from_its_config_or_is_refused() -> None:
    written: dict[str, int] = {}
    for shape in every_shape():
        found = possible(shape)
        if found is None:
            continue
        kind = found.values["model_type"]
        written[kind] = written.get(kind, 0) + 1
        back = audit(found.values)
        a = shape.attention
        assert back.params_total == params_total(shape), found.values
        assert (back.projection, back.n_heads) == (a.projection, a.n_heads)
        assert back.kv_bytes_per_token == 2 * LAYERS * a.cache_elements()
        assert back.warnings == () or kind == "deepseek_v32", back.warnings
        scopes = [x.scope for x in read_shape(found.values).layers]
        assert scopes == [x.scope for x in in_order(shape)]
    assert set(written) == {
        "llama", "mistral", "ministral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "mellum",
        "glm4_moe", "exaone_moe", "deepseek_v3", "deepseek_v32",
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # no shared experts
@pytest.mark.parametrize("kind", ["dense", *MIXTURES])
def test_transformers_builds_what_is_written_to_the_last_weight(kind: str) -> None:
    ff = MIXTURES.get(kind, DENSE)
    attentions = [gqa(), gqa(8, qk_norm=True), gqa(1, bias="qkv"), mla(), mla(q_lora_rank=24)]
    built = 0
    for attention, window in itertools.product(attentions, WINDOWS):
        shape = model(attention, ff, **window)
        found = possible(shape)
        if found is not None:
            assert weights_of(found) == params_total(shape)
            built += 1
    assert built >= 4


def test_a_width_that_is_no_multiple_of_the_heads_is_warned_about_and_still_works() -> None:
    request = GeometryRequest(d_model=1792, n_heads=24, n_kv_heads=8, d_head=128, n_layers=32)
    case, _ = geometry_case(request)
    found = export_case(case, "huggingface")
    assert "transformers 5.24.0 refuses this shape under model_type llama" in found.warnings[0]
    assert "1792 is not a multiple of 24 heads" in found.warnings[0]
    assert found.values["model_type"] == "mistral"
    weights_of(found)
    values = {k: v for k, v in found.values.items() if k != "model_type"}
    from transformers import AutoConfig

    with pytest.raises(Exception, match="not a multiple of the number of attention heads"):
        AutoConfig.for_model("llama", **values)


def test_windows_lie_where_full_every_counts_them() -> None:
    case, _ = geometry_case(
        GeometryRequest(d_model=512, n_heads=8, n_layers=12, window="128", full_every=6)
    )
    kinds = export_case(case, "hf").values["layer_types"]
    assert [i for i, k in enumerate(kinds) if k == "full_attention"] == [5, 11]
    indices = export_case(case, "litgpt").values["sliding_window_indices"]
    assert [i for i, w in enumerate(indices) if not w] == [5, 11]
    flags = export_case(case, "megatron").values
    assert flags["--window-size"] == "(127,0)"
    assert flags["--window-attn-skip-freq"] == "[1,1,1,1,1,0,1,1,1,1,1,0]"


def test_encoders_and_encoder_decoders_are_t5() -> None:
    common: dict[str, Any] = {"d_model": 512, "n_heads": 8, "n_layers": 6, "d_ff": 2048,
                              "vocab_size": 32128}  # fmt: skip
    for arch, extra, classes in (
        ("encoder", 32 * 8, "T5EncoderModel"),
        ("encoder-decoder", 2 * 32 * 8, "T5ForConditionalGeneration"),
    ):
        case, _ = geometry_case(GeometryRequest(arch=arch, **common))
        found = export_case(case, "huggingface")
        assert f"T5 adds {extra:,} weights" in found.warnings[0]
        assert found.values["architectures"] == [classes]
        assert audit(found.values).params_total == params_total(case.shape) + extra
        assert weights_of(found) == params_total(case.shape) + extra
        for to in set(formats()) - {"huggingface"}:
            with pytest.raises(UsageError, match=f"cannot express an {arch}"):
                export_case(case, to)


@pytest.mark.parametrize(
    ("attention", "to", "said"),
    [
        (gqa(v_head_dim=32), "huggingface", "values of 32 beside keys of 16"),
        (gqa(v_head_dim=32), "litgpt", "values of 32 beside keys of 16"),
        (gqa(bias="all"), "litgpt", "attention biases on all"),
        (gqa(bias="qkv"), "torchtitan", "attention biases on qkv"),
        (mla(), "litgpt", "MLA without a query latent"),
        (mla(index_head_dim=32, index_n_heads=2), "megatron", "MLA with an indexer"),
        (mla(index_head_dim=32, index_n_heads=2), "torchtitan", "MLA with a sparse indexer"),
        (gqa(gate_params=1), "megatron", "gates, sinks or shared keys"),
    ],
)
def test_what_a_format_has_no_name_for_is_refused(attention: Any, to: str, said: str) -> None:
    with pytest.raises(UsageError, match="cannot express") as error:
        done(model(attention), to)
    assert said in str(error.value)


@pytest.mark.parametrize("to", sorted(formats()))
@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ({"d_head": 63}, "use --d-head 64"),
        ({"kv_lora_rank": 32, "q_lora_rank": 32, "qk_rope_head_dim": 7},
         "use --qk-rope-head-dim 8"),
    ],
    ids=("grouped", "latent"),
)  # fmt: skip
def test_an_odd_rotary_width_is_refused(to: str, keys: dict[str, int], remedy: str) -> None:
    case, _ = geometry_case(GeometryRequest(d_model=D, n_heads=4, n_layers=2, **keys))
    with pytest.raises(UsageError, match=f"an odd width of .*; {remedy}"):
        export_case(case, to)


@pytest.mark.parametrize("to", ["llama_cpp", "torchtitan"])
def test_windows_are_refused_where_they_would_be_dropped(to: str) -> None:
    with pytest.raises(UsageError, match="sliding windows"):
        done(model(gqa(), window=8, full_every=3), to)


def test_shapes_that_no_plain_decoder_has_are_refused() -> None:
    mixed = {"model_type": "gemma2", "num_hidden_layers": 2, "hidden_size": 64,
             "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 32}  # fmt: skip
    with pytest.raises(UsageError, match="norms, positions or towers"):
        export(subject_from(mixed), "huggingface")
    recurrent = {"model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 64,
                 "num_heads": 8, "head_dim": 16, "vocab_size": 32}  # fmt: skip
    with pytest.raises(UsageError, match="layer 0"):
        export(subject_from(recurrent), "megatron")


def test_every_format_says_the_geometry() -> None:
    shape = model(gqa(qk_norm=True), MIXTURES["unshared"])
    work = {"tensor_parallel": 2, "batch": 3}
    megatron = done(shape, "megatron", **work)
    assert megatron.values["--num-query-groups"] == 2
    assert megatron.values["--moe-layer-freq"] == "[0]*0+[1]*7"
    assert "--qk-layernorm \\\n" in megatron.text
    assert "--num-experts 8" in megatron.text
    titan = done(shape, "torchtitan", **work)
    space: dict[str, Any] = {}
    body = titan.text.partition("SHAPE = ")[2].partition("}\n")[0] + "}"
    exec(f"shape = {body}", space)
    assert (space["shape"]["n_kv_heads"], space["shape"]["num_experts"]) == (2, 8)
    compile(titan.text, titan.file, "exec")
    litgpt = done(shape, "litgpt")
    assert "n_query_groups: 2\n" in litgpt.text
    assert "norm_qk: true\n" in litgpt.text
    vllm = done(shape, "vllm", **work)
    assert (vllm.values["--tensor-parallel-size"], vllm.values["--max-num-seqs"]) == (2, 3)
    llama = done(shape, "llama.cpp", batch=3)
    assert llama.values["flags"]["--ctx-size"] == 3 * 4096
    assert llama.values["gguf"]["qwen3moe.attention.key_length"] == 16


@pytest.mark.parametrize(
    ("kv", "to", "said"),
    [
        ("bf16", "vllm", "auto"), ("fp8", "vllm", "fp8"), ("int8", "vllm", None),
        ("nvfp4", "vllm", None), ("q8_0", "vllm", None), ("k=q8_0,v=q4_0", "vllm", None),
        ("fp16", "llama_cpp", "f16"), ("fp32", "llama_cpp", "f32"), ("fp8", "llama_cpp", None),
        ("nvfp4", "llama_cpp", None), ("int4", "llama_cpp", None),
    ],
)  # fmt: skip
def test_cache_types(kv: str, to: str, said: str | None) -> None:
    shape = model(GroupedQuery(d_model=D, n_heads=8, n_kv_heads=2, d_head=32))
    if said is None:
        with pytest.raises(UsageError, match="a cache of"):
            done(shape, to, kv=cache_type(kv))
        return
    values = done(shape, to, kv=cache_type(kv)).values
    assert values.get("--kv-cache-dtype", values.get("flags", {}).get("--cache-type-k")) == said


def test_llama_cpp_quantises_whole_blocks_with_flash_attention() -> None:
    shape = model(GroupedQuery(d_model=D, n_heads=8, n_kv_heads=2, d_head=32))
    found = done(shape, "llama_cpp", kv=cache_type("k=q8_0,v=q4_0"))
    assert found.values["flags"]["--flash-attn"] == "on"
    assert "--cache-type-v q4_0" in found.text
    with pytest.raises(UsageError, match="for heads of 16"):
        done(model(gqa()), "llama_cpp", kv=cache_type("q8_0"))


@pytest.mark.parametrize(("to", "ranks"), [("vllm", 3), ("megatron", 16), ("torchtitan", 4)])
def test_ranks_that_the_heads_do_not_allow(to: str, ranks: int) -> None:
    with pytest.raises(RanksError, match="ranks"):
        done(model(gqa()), to, tensor_parallel=ranks)


def test_llama_cpp_has_no_ranks() -> None:
    with pytest.raises(UsageError, match="2 ranks that share the heads"):
        done(model(gqa()), "llama_cpp", tensor_parallel=2)


def test_replicas_share_the_batch() -> None:
    request = GeometryRequest(d_model=4096, n_heads=32, n_kv_heads=8, n_layers=32, batch=30,
                              target="4xh100-sxm", tensor_parallel=2)  # fmt: skip
    values = export_case(geometry_case(request)[0], "vllm").values
    assert (values["--data-parallel-size"], values["--max-num-seqs"]) == (2, 15)


def test_a_model_of_the_catalog_and_a_file_are_served_as_they_are(tmp_path: Any) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(done(model(gqa(), tied=True)).values))
    found = export(subject_from(str(file), context="2k"), "vllm")
    assert found.text.startswith(f"vllm serve {tmp_path}")
    assert found.values["--max-model-len"] == 2048
    assert "vllm serve MODEL_FOLDER" in export(subject_from("qwen3-8b"), "vllm").text


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown format 'vlm'; nearest: vllm"):
        done(model(gqa()), "vlm")
