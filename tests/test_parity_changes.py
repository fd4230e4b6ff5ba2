"""Keys that change what a family has: our count against the class with that key changed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from parity_check import build, cache_after_forward, expected_layers, observed_layers
from parity_models import MODELS, TOKENS, Model

from configurator.core.cost import params_total
from configurator.interop.audit import audit
from configurator.interop.huggingface import read_shape

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers and torch, not ours

_CHANGES: list[tuple[str, dict[str, Any]]] = [
    # A flag that is null is false in every class, whatever its default.
    ("falcon", {"multi_query": None}),
    ("falcon", {"parallel_attn": None}),
    ("bamba", {"mamba_conv_bias": None}),
    ("granitemoehybrid", {"mamba_conv_bias": None}),
    ("falcon_h1", {"mamba_conv_bias": None}),
    ("gemma3_text", {"use_bidirectional_attention": True}),  # half of the window lies behind
    ("gemma4_text", {"use_bidirectional_attention": "all"}),
    ("gemma3", {"tie_word_embeddings": None}),
    ("eurobert", {"mlp_bias": True}),
    ("deberta-v2", {"relative_attention": False}),
    ("gpt_neox_japanese", {"intermediate_multiple_size": 2}),
    ("gemma4_text", {"attention_bias": True}),  # values that are keys have no bias of their own
    ("cohere2_moe", {"num_shared_experts": 2}),
    ("deepseek_v4", {"n_shared_experts": 2}),  # one, whatever the file counts
    ("deepseek_v4", {"mlp_bias": True}),
    ("qwen2_moe", {"shared_expert_intermediate_size": 0}),  # its gate stays
    ("qwen3_next", {"shared_expert_intermediate_size": 0}),
    ("marian", {"share_encoder_decoder_embeddings": False}),
    ("marian", {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 700}),
]


def _changed(model_type: str, keys: dict[str, Any]) -> Model:
    model = next(m for m in MODELS if m.model_type == model_type)
    return replace(model, config=copy.deepcopy(model.config) | keys)


@pytest.mark.parametrize(("model_type", "keys"), _CHANGES, ids=[f"{t}-{[*k]}" for t, k in _CHANGES])
def test_weights_and_cache_follow_the_class(model_type: str, keys: dict[str, Any]) -> None:
    model = _changed(model_type, keys)
    reading = read_shape({"model_type": model_type, **model.config})
    counted = sum(p.numel() for p in build(model, device="meta").parameters())
    assert params_total(reading.shape) == counted
    if model.feed:
        assert observed_layers(cache_after_forward(model)) == expected_layers(
            reading, model, TOKENS
        )


@pytest.mark.parametrize(
    "names",
    [
        {"t5": {"num_heads": "num_attention_heads", "num_layers": "num_hidden_layers",
                "d_kv": "head_dim", "d_model": "hidden_size"}},
        {"bart": {"encoder_layers": "num_hidden_layers",
                  "encoder_attention_heads": "num_attention_heads"}},
        {"whisper": {"d_model": "hidden_size", "encoder_layers": "num_hidden_layers"}},
        {"jetmoe": {"kv_channels": "head_dim"}},
        {"gpt2": {"n_embd": "hidden_size", "n_layer": "num_hidden_layers"}},
    ],
    ids=str,
)  # fmt: skip
def test_other_names_that_a_class_takes_for_its_keys(names: dict[str, dict[str, str]]) -> None:
    ((model_type, other),) = names.items()
    model = _changed(model_type, {})
    renamed = {other.get(key, key): value for key, value in model.config.items()}
    assert renamed != model.config
    counted = sum(
        p.numel() for p in build(replace(model, config=renamed), device="meta").parameters()
    )
    reading = read_shape({"model_type": model_type, **renamed})
    assert params_total(reading.shape) == counted
    assert reading.layers == read_shape({"model_type": model_type, **model.config}).layers


def test_a_switch_that_the_class_has_not_is_honoured_and_said() -> None:
    keys = {"use_sliding_window": False, "sliding_window": 16}
    answer = audit(_values(_changed("mistral", keys)), context=64)
    assert answer.kv_bytes_per_token == answer.kv_bytes_per_token_past_window
    assert any("no such switch" in text for text in answer.warnings)
    qwen = audit(_values(_changed("qwen2", keys)), context=64)
    assert not any("no such switch" in text for text in qwen.warnings)


def _values(model: Model) -> dict[str, Any]:
    return {"model_type": model.model_type, **model.config}
