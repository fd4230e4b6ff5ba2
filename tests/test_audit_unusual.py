"""Files that say it another way: other places for keys, flags that overrule, lists, quantisers."""

from __future__ import annotations

from typing import Any

import pytest

from configurator.core.errors import UsageError
from configurator.interop.audit import Audit, audit
from configurator.interop.huggingface.config import Config

PLAIN: dict[str, Any] = {
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128,
    "intermediate_size": 14336, "vocab_size": 32000,
}  # fmt: skip
LLAMA = {"model_type": "llama", "num_key_value_heads": 8, **PLAIN}
MULTI_QUERY = {**PLAIN, "multi_query": True}
ONE_HEAD = 2 * 32 * 128 * 2  # bytes of one KV head a token, in all layers, bf16
LATENT: dict[str, Any] = {
    "model_type": "deepseek_v3", "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": None,
    **{k: v for k, v in PLAIN.items() if k != "head_dim"},
}  # fmt: skip


def _says(answer: Audit, part: str) -> bool:
    return any(part in text for text in answer.warnings)


@pytest.mark.parametrize(
    ("keys", "kv_heads"),
    [
        ({"multi_query": True}, 1),
        ({"multi_query": True, "num_kv_heads": 4}, 4),
        ({"attn_config": {"kv_n_heads": 8}}, 8),
        ({"num_query_groups": 8, "group_query_attention": True}, 8),
        ({"num_query_groups": 1, "group_query_attention": False}, 32),
        ({"multi_query_attention": True, "multi_query_group_num": 2}, 2),
        ({"n_query_groups": 8}, 8),
        ({"n_kv_head": 4}, 4),
        ({"kv_heads": 2}, 2),
        ({}, 32),
    ],
)
def test_kv_heads_of_an_unknown_type(keys: dict[str, Any], kv_heads: int) -> None:
    answer = audit({**PLAIN, **keys}, context=1024)
    assert answer.n_kv_heads == kv_heads
    assert answer.kv_bytes_per_token == kv_heads * ONE_HEAD


@pytest.mark.parametrize("key", ["n_kv_groups", "num_key_value_groups", "numKVHeads"])
def test_a_key_that_looks_like_kv_heads_and_is_not_read_is_said(key: str) -> None:
    assert _says(audit({**PLAIN, key: 8}), f"{key}: changes the cache")
    assert not _says(audit({**PLAIN, key: 8, "num_kv_heads": 4}), key)


@pytest.mark.parametrize(
    ("keys", "growing"),
    [
        ({"sliding_window": 512, "global_attn_every_n_layers": 4}, 8),
        ({"sliding_window": 512, "_sliding_window_pattern": 8}, 4),
        ({"sliding_window": 512, "hybrid_layer_pattern": [1, 0] * 16}, 16),
        ({"attention_chunk_size": 512, "no_rope_layer_interval": 4}, 8),
        ({"attention_chunk_size": 512}, 0),
    ],
)
def test_windows_of_an_unknown_type(keys: dict[str, Any], growing: int) -> None:
    answer = audit({**PLAIN, **keys}, context=1024)
    assert answer.kv_bytes_per_token_past_window == growing * 32 * ONE_HEAD // 32


def test_a_window_that_cannot_be_placed_is_said() -> None:
    assert _says(audit({**PLAIN, "local_attention": 128}, context=1024), "local_attention")


def test_keys_of_recurrent_layers_are_said_and_a_schedule_of_them_is_refused() -> None:
    assert _says(audit({**PLAIN, "mamba_expand": 2}), "mamba_expand: layers that keep a state")
    for schedule in ({"hybrid_override_pattern": "M*" * 16}, {"layer_group_size": 8}):
        with pytest.raises(UsageError, match="layer 0 is linear_attention"):
            audit({**PLAIN, **schedule})
    assert audit({**PLAIN, "hybrid_override_pattern": "*-" * 16}).kv_layers == 16


HYBRIDS: dict[str, dict[str, Any]] = {
    "full_attn_idxs": {"model_type": "lfm2", **PLAIN},
    "attn_layer_indices": {
        "model_type": "bamba", **PLAIN, "mamba_n_heads": 128, "mamba_d_head": 64,
    },
    "cross_attention_layers": {"model_type": "mllama_text_model", **PLAIN},
}  # fmt: skip


@pytest.mark.parametrize("key", HYBRIDS)
def test_a_layer_that_the_model_has_not_is_refused(key: str) -> None:
    assert audit({**HYBRIDS[key], key: [3, 31]}).kv_layers in (2, 30)
    with pytest.raises(UsageError, match=rf"{key} names layer 32 of 32"):
        audit({**HYBRIDS[key], key: [3, 32]})


def test_schedules_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="attn_layer_offset 9 is not below attn_layer_period 8"):
        audit({"model_type": "jamba", **PLAIN, "attn_layer_period": 8, "attn_layer_offset": 9})
    with pytest.raises(UsageError, match="hybrid_override_pattern lists 3 layers"):
        audit({"model_type": "nemotron_h", **PLAIN, "hybrid_override_pattern": "*-*"})


@pytest.mark.parametrize("model_type", ["xlstm", "rwkv7", "gla", "gated_deltanet", "retnet"])
def test_a_type_without_attention_has_no_cache_to_count(model_type: str) -> None:
    with pytest.raises(UsageError, match="keeps a recurrent state in place of a cache"):
        audit({"model_type": model_type, **PLAIN})


def test_experts_in_a_section_are_counted() -> None:
    """Mistral's own files keep the experts of Mixtral 8x7B in ``moe``."""
    mixtral = {
        "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
        "n_kv_heads": 8, "vocab_size": 32000, "moe": {"num_experts_per_tok": 2, "num_experts": 8},
    }  # fmt: skip
    answer = audit(mixtral, context=1024)
    assert answer.params_total == 46_702_792_704
    assert answer.params_active_per_token == 46_702_792_704 - 6 * 32 * 3 * 4096 * 14336


EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512}
EXPERT = 3 * 4096 * 512


@pytest.mark.parametrize(
    ("keys", "more"),
    [
        ({"n_shared_experts": 2}, 32 * 2 * EXPERT),
        ({"shared_expert_intermediate_size": 1024}, 32 * 2 * EXPERT),
        ({"shared_expert_intermediate_size": 1024, "n_shared_experts": 1}, 32 * 2 * EXPERT),
        ({"moe_layer_interval": 2}, 16 * (3 * 4096 * 14336 - 8 * EXPERT - 8 * 4096)),
        ({"interleave_moe_layer_step": 2}, 16 * (3 * 4096 * 14336 - 8 * EXPERT - 8 * 4096)),
        ({"v_head_dim": 64}, -32 * 2 * 32 * 64 * 4096),
    ],
)
def test_weights_of_an_unknown_type_by_keys_of_others(keys: dict[str, Any], more: int) -> None:
    plain, changed = audit({**PLAIN, **EXPERTS}), audit({**PLAIN, **EXPERTS, **keys})
    assert plain.params_total is not None
    assert changed.params_total == plain.params_total + more


def test_values_narrower_than_keys_and_an_indexers_keys_of_an_unknown_type() -> None:
    narrow = audit({**PLAIN, "num_key_value_heads": 8, "v_head_dim": 64})
    assert (narrow.v_head_dim, narrow.kv_bytes_per_token) == (64, 32 * 8 * (128 + 64) * 2)
    sparse = audit({**LATENT, "model_type": "new", "index_head_dim": 128, "index_n_heads": 64})
    assert sparse.kv_bytes_per_token == 32 * (512 + 64 + 128) * 2


@pytest.mark.parametrize("entries", [31, 33])
@pytest.mark.parametrize("key", ["num_key_value_heads", "num_attention_heads", "intermediate_size"])
def test_a_list_must_be_as_long_as_the_model(key: str, entries: int) -> None:
    value = {"num_attention_heads": 32, "intermediate_size": 14336}.get(key, 8)
    with pytest.raises(UsageError, match=rf"lists {entries} layers but num_hidden_layers is 32"):
        audit({**LLAMA, key: [value] * entries})


def test_a_list_may_hold_the_extra_prediction_layer() -> None:
    answer = audit({**LLAMA, "num_key_value_heads": [8] * 33, "num_nextn_predict_layers": 1})
    assert answer.kv_bytes_per_token == 8 * ONE_HEAD


@pytest.mark.parametrize("value", [0, -8, 8.5, "8", True])
@pytest.mark.parametrize("base", [LATENT, MULTI_QUERY, {**MULTI_QUERY, "model_type": "falcon"}])
def test_a_count_that_cannot_be_is_refused_where_it_plays_no_part(
    base: dict[str, Any], value: object
) -> None:
    with pytest.raises(UsageError, match="num_key_value_heads"):
        audit({**base, "num_key_value_heads": value})


def test_a_latent_without_its_rank_is_refused_and_a_switch_says_that_there_is_none() -> None:
    assert audit(LATENT).projection == "MLA"
    with pytest.raises(UsageError, match="kv_lora_rank is null but qk_nope_head_dim is 128"):
        audit({**LATENT, "kv_lora_rank": None})
    for rank in (None, 512):
        plain = audit({**LATENT, "kv_lora_rank": rank, "use_mla": False, "num_key_value_heads": 8})
        assert (plain.projection, plain.n_kv_heads, plain.d_head) == ("GQA", 8, 128)


def test_names_that_disagree_are_said() -> None:
    assert _says(audit({**LLAMA, "n_layer": 12}), "num_hidden_layers is 32 but n_layer is 12")
    assert not _says(audit({**LLAMA, "n_layer": 32}), "n_layer")


def test_without_experts_per_token_only_the_active_parameters_are_unknown() -> None:
    mixture = {"n_routed_experts": 4, "moe_intermediate_size": 64, "model_type": "deepseek_v2"}
    answer = audit({**LATENT, **mixture})
    assert answer.params_total is not None
    assert answer.params_active_per_token is None
    assert _says(answer, "num_experts_per_tok")


def test_the_first_chatglm_has_norms_with_shifts_and_a_plain_feed_forward() -> None:
    """ChatGLM-6B, one matrix for both ends: its model card counts 6.2 billion."""
    d, width = 4096, 16384
    block = 4 * d * d + 4 * d + 2 * d * width + width + d + 2 * 2 * d
    answer = audit({
        "model_type": "chatglm", "hidden_size": d, "inner_hidden_size": width, "num_layers": 28,
        "num_attention_heads": 32, "vocab_size": 130_528, "max_sequence_length": 2048,
    })  # fmt: skip
    assert answer.params_total == 130_528 * d + 28 * block + 2 * d == 6_173_286_400
    assert answer.kv_bytes_per_token == 2 * 28 * d * 2


@pytest.mark.parametrize(("model_type", "kv_heads"), [("RefinedWebModel", 1), ("RefinedWeb", 8)])
def test_falcons_first_types_say_which_decoder_it_is(model_type: str, kv_heads: int) -> None:
    keys = {"hidden_size": 1024, "n_layer": 2, "n_head": 16, "n_head_kv": 8, "multi_query": True}
    assert audit({"model_type": model_type, "vocab_size": 100, **keys}).n_kv_heads == kv_heads


def test_a_null_width_that_the_class_has_another_for_is_said() -> None:
    gemma = {**LLAMA, "model_type": "gemma", "head_dim": None}
    answer = audit(gemma)
    assert answer.d_head == 128
    assert _says(answer, "where the key is absent gemma means 256")
    assert not _says(audit({**LLAMA, "head_dim": None}), "is null")


def test_a_null_feed_forward_is_unknown_where_the_class_wants_a_number() -> None:
    answer = audit({**LLAMA, "intermediate_size": None})
    assert answer.params_total is None
    assert _says(answer, "does not state intermediate_size")
    gpt2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}
    assert audit({**gpt2, "n_inner": None}).params_total == audit(gpt2).params_total


def test_linear_value_heads_that_key_heads_do_not_divide_are_refused() -> None:
    keys = {"model_type": "qwen3_next", "hidden_size": 2048, "linear_num_key_heads": 16}
    with pytest.raises(UsageError, match="linear_num_value_heads 24 is not a multiple"):
        audit({**keys, "linear_num_value_heads": 24})
    assert audit({**keys, "linear_num_value_heads": 32}).projection == "GQA"


# ---- a source that is attended to


def test_an_encoder_decoder_of_an_unknown_type_keeps_its_source() -> None:
    """Moonshine tiny: 6 decoder layers of 8 heads of 36, each with a cache for the sound too."""
    moonshine = {
        "model_type": "moonshine", "is_encoder_decoder": True, "hidden_size": 288,
        "encoder_num_hidden_layers": 6, "decoder_num_hidden_layers": 6,
        "encoder_num_attention_heads": 8, "decoder_num_attention_heads": 8,
        "decoder_num_key_value_heads": 8, "intermediate_size": 1152, "vocab_size": 32768,
    }  # fmt: skip
    answer = audit(moonshine, context=100, source_len=415)
    assert answer.kv_bytes_per_token == 2 * 6 * 8 * 36 * 2
    assert answer.kv_fixed_bytes_per_sequence == {"cross_attention": 2 * 6 * 8 * 36 * 2 * 415}
    assert answer.kv_layers == 6
    assert answer.params_total is None


def test_decoder_layers_come_before_the_encoders_number() -> None:
    """Saved files state ``num_hidden_layers`` of the encoder beside the decoder's."""
    both = {"model_type": "x", "is_encoder_decoder": True, "d_model": 512, "num_hidden_layers": 12,
            "encoder_layers": 12, "decoder_layers": 3, "encoder_attention_heads": 16,
            "decoder_attention_heads": 8, "vocab_size": 1000}  # fmt: skip
    answer = audit(both, context=10, source_len=7)
    assert answer.kv_bytes_at_context == 2 * 3 * 512 * 2 * (10 + 7)


def test_a_decoder_beside_an_encoder_attends_to_it() -> None:
    """TrOCR's file: a ViT of 577 positions and a decoder of its own."""
    file = {
        "model_type": "vision-encoder-decoder",
        "encoder": {"model_type": "vit", "hidden_size": 768, "num_attention_heads": 12},
        "decoder": {"model_type": "trocr", "d_model": 1024, "decoder_layers": 12,
                    "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 50265},
    }  # fmt: skip
    answer = audit(file, context=10, source_len=577)
    assert answer.kv_bytes_at_context == 2 * 12 * 1024 * 2 * (10 + 577)
    assert _says(answer, "the encoder tower")


@pytest.mark.parametrize(
    ("model_type", "keys"),
    [
        ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4}),
        ("bert", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "intermediate_size": 128, "is_decoder": True}),
    ],
)  # fmt: skip
def test_cross_attention_that_a_flag_adds(model_type: str, keys: dict[str, Any]) -> None:
    """Weights by the class on the meta device, the cache by hand."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    keys = {**keys, "vocab_size": 100, "add_cross_attention": True}
    config = transformers.AutoConfig.for_model(model_type, **keys)
    with torch.device("meta"):
        net = transformers.AutoModelForCausalLM.from_config(config)
    answer = audit({"model_type": model_type, **keys}, context=10, source_len=7)
    assert answer.params_total == sum(p.numel() for p in net.parameters())
    assert answer.kv_bytes_at_context_by_kind == {
        "self_attention": 2 * 2 * 64 * 2 * 10, "cross_attention": 2 * 2 * 64 * 2 * 7,
    }  # fmt: skip


# ---- the type of the weights


@pytest.mark.parametrize(
    ("scheme", "stored"),
    [
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "awq", "w_bit": 4}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "int4"),
        ({"quant_method": "quanto", "weights": "int8"}, "int8"),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "int4"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"quant_method": "compressed-tensors",
          "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        ({"quant_method": "quark",
          "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8"),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}}, "int4"),
    ],
)  # fmt: skip
def test_the_type_that_a_quantiser_stores(scheme: dict[str, Any], stored: str) -> None:
    for file in (
        {**LLAMA, "quantization_config": scheme},
        {"model_type": "llava", "text_config": {**LLAMA, "quantization_config": scheme}},
    ):
        answer = audit(file)
        assert answer.weight_dtype == stored
        assert not _says(answer, "is not read")


@pytest.mark.parametrize("scheme", [{"quant_method": "aqlm"}, {"quant_method": "gptq", "bits": 3}])
def test_a_quantiser_that_is_not_read_is_said(scheme: dict[str, Any]) -> None:
    answer = audit({**LLAMA, "quantization_config": scheme})
    assert answer.weight_dtype == "bf16"
    assert _says(answer, f"quantization_config of '{scheme['quant_method']}' is not read")


def test_entries_are_by_layer_or_for_all() -> None:
    config = Config(values={"n_layer": 2, "n_inner": [3, 4], "n_head": 5})
    assert [config.entry("intermediate_size", i) for i in (0, 1)] == [3, 4]
    assert config.entry("num_attention_heads", 1) == 5
    assert config.entry("head_dim", 1) is None
