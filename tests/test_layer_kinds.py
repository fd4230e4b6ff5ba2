"""Which layers keep a window when a file lists no ``layer_types``: the rule of each class."""

from __future__ import annotations

import json
from typing import Any

import pytest

from configurator.core.errors import UsageError
from configurator.interop.audit import audit
from configurator.interop.huggingface import read_shape

SIZES: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 9, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 500, "max_position_embeddings": 256,
}  # fmt: skip
WINDOW = {"sliding_window": 16}
ON = {**WINDOW, "use_sliding_window": True}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("mistral", WINDOW), ("starcoder2", WINDOW), ("phi3", WINDOW), ("gemma2", WINDOW),
    ("gemma3_text", {**WINDOW, "sliding_window_pattern": 4}), ("gemma3_text", WINDOW),
    ("gpt_oss", WINDOW), ("cohere2", WINDOW), ("cohere2", {**WINDOW, "sliding_window_pattern": 3}),
    ("olmo3", {**WINDOW, "sliding_window_pattern": 3}), ("exaone4", WINDOW), ("cwm", WINDOW),
    ("vaultgemma", WINDOW), ("afmoe", WINDOW), ("mimo_v2_flash", WINDOW),
    ("granite_swa", WINDOW), ("granitemoe_swa", WINDOW), ("mellum", {}),
    ("dots1", {**WINDOW, "max_window_layers": 5}), ("dots1", WINDOW),
    ("smollm3", ON), ("smollm3", {**ON, "no_rope_layer_interval": 2}),
    ("smollm3", {**ON, "no_rope_layers": [1, 0, 1, 1, 0, 1, 1, 0, 1]}),
    ("qwen2", {**ON, "max_window_layers": 6}), ("qwen2", {**WINDOW, "use_sliding_window": False}),
    ("qwen3", {**ON, "max_window_layers": 0}), ("qwen3_moe", ON),
    ("qwen2_moe", {**ON, "max_window_layers": 6}), ("qwen2_moe", ON), ("qwen2_moe", WINDOW),
    ("llama4_text", {}), ("llama4_text", {"attention_chunk_size": 32}),
    ("llama4_text", {"attention_chunk_size": 32, "no_rope_layer_interval": 3}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model_type", "more"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_same_layers_as_the_class(model_type: str, more: dict[str, Any]) -> None:
    from transformers.cache_utils import get_layer_types_and_kwargs
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    values = {"model_type": model_type, **SIZES, **more}
    config = CONFIG_MAPPING[model_type].from_dict(json.loads(json.dumps(values)))
    kinds, kept = get_layer_types_and_kwargs(config)
    expected = [
        (kind, kwargs.get("sliding_window") or 0) for kind, kwargs in zip(kinds, kept, strict=True)
    ]
    names = {"full": "full_attention", "window": "sliding_attention", "chunk": "chunked_attention"}
    read = [(names[g.scope.kind], int(g.scope.size)) for g in read_shape(values).layers]
    assert read == expected


def test_a_llama_4_file_without_a_chunk_has_the_one_of_its_class() -> None:
    found = audit({"model_type": "llama4_text", **SIZES, "num_hidden_layers": 8}, context="32k")
    layer = 2 * 2 * 128 * 2  # heads of 128 by default, bf16
    assert found.kv_bytes_at_context == layer * (6 * 8192 + 2 * 32768)


def test_a_flat_file_of_a_vision_model_counts_its_tower() -> None:
    """Qwen2-VL-7B as it was published: text sizes at the top. The class has 8,291,375,616."""
    found = audit({
        "model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
        "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
        "sliding_window": 32768, "use_sliding_window": False, "max_window_layers": 28,
        "tie_word_embeddings": False, "vocab_size": 152064, "max_position_embeddings": 32768,
        "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16,
                          "in_chans": 3, "hidden_size": 3584, "patch_size": 14,
                          "spatial_merge_size": 2, "temporal_patch_size": 2},
    })  # fmt: skip
    assert (found.model_type, found.params_total) == ("qwen2_vl", 8_291_375_616)
    assert (found.kv_bytes_per_token, found.vision_tower_heads) == (57_344, 16)


def test_keys_with_hyphens_are_read() -> None:
    """As GPT-NeoX's own files spell them."""
    sizes = {"num-layers": 32, "hidden-size": 4096, "num-attention-heads": 32, "num-kv-heads": 8}
    found = audit({**sizes, "seq-length": 2048})
    assert (found.n_heads, found.n_kv_heads, found.d_head, found.context) == (32, 8, 128, 2048)
    assert found.kv_bytes_per_token == 32 * 2 * 8 * 128 * 2


@pytest.mark.parametrize("model_type", ["minimax_text_01", "MiniMaxText01", "MiniMaxM1"])
def test_an_older_name_of_a_hybrid_is_the_same_model(model_type: str) -> None:
    sizes = {**SIZES, "num_hidden_layers": 16, "num_local_experts": 4, "num_experts_per_tok": 2}
    found = audit({"model_type": model_type, **sizes, "attn_type_list": ([0] * 7 + [1]) * 2})
    assert found.kv_layers == 2


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"model_type": "mpt", "n_heads": 32, "d_model": 2048, "n_layers": 2, "vocab_size": 10,
          "attn_config": {"kv_n_heads": 7}}, "attn_config.kv_n_heads 7"),
        ({"model_type": "dbrx", "n_heads": 48, "d_model": 6144, "n_layers": 2, "vocab_size": 10,
          "attn_config": {"kv_n_heads": 5}, "ffn_config": {"ffn_hidden_size": 10}},
         "attn_config.kv_n_heads 5"),
        ({"model_type": "deci", "num_attention_heads": 32, "hidden_size": 4096, "vocab_size": 10,
          "num_hidden_layers": 2, "num_key_value_heads_per_layer": [4, 3]},
         "num_key_value_heads_per_layer[1] 3"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_key_that_holds_the_kv_heads(values: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError) as caught:
        audit(values)
    assert key in str(caught.value)


@pytest.mark.parametrize(
    ("more", "full"),
    [
        ({}, 9), ({**WINDOW, "sliding_window_pattern": 3}, 3),
        ({**WINDOW, "sliding_window_pattern": "LLG"}, 3),
        ({**ON, "max_window_layers": 4}, 4), ({**WINDOW, "hybrid_layer_pattern": [0, 1, 1] * 3}, 3),
        ({"attention_chunk_size": 32, "no_rope_layers": [1, 1, 0] * 3}, 3), (WINDOW, 0),
    ],
)  # fmt: skip
def test_an_unknown_type_keeps_the_schedule_that_its_file_states(
    more: dict[str, Any], full: int
) -> None:
    found = audit({"model_type": "brand_new", **SIZES, **more})
    layer = 2 * 2 * 16 * 2
    assert found.kv_bytes_per_token == 9 * layer
    assert found.kv_bytes_per_token_past_window == full * layer


@pytest.mark.parametrize(
    "more",
    [
        {"attn_type_list": [0, 0, 1] * 3}, {"full_attn_idxs": [2, 5]},
        {"attn_layer_indices": [2, 5]}, {"attn_layer_period": 3, "attn_layer_offset": 1},
        {"full_attention_interval": 3}, {"linear_attn_config": {"full_attn_layers": [3, 6]}},
    ],
)  # fmt: skip
def test_an_unknown_hybrid_is_not_counted_as_if_every_layer_attended(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="layer 0 is linear_attention, whose state is not known"):
        audit({"model_type": "brand_new", **SIZES, **more})


def test_keys_that_an_unknown_type_may_mean_are_named() -> None:
    found = audit({"model_type": "brand_new", **SIZES, "multi_query": True, "use_cla": False})
    assert any(w.startswith("multi_query: changes the cache") for w in found.warnings)
