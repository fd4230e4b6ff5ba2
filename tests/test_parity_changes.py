"""Keys that change what a family has: our count against the class with that key changed."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from class_defaults import PATH
from parity_check import build, cache_after_forward, expected_layers, observed_layers
from parity_models import MODELS, TOKENS, Model

from configurator.core.cost import params_total
from configurator.core.errors import UsageError
from configurator.interop.audit import audit
from configurator.interop.huggingface import read_shape
from configurator.interop.huggingface.family import families
from configurator.interop.huggingface.tying import FORWARDED, NEVER, TEXT

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
    ("nemotron_h", {"attention_bias": True}),  # the class reads no such key
    ("zamba2", {"use_conv_bias": False}),  # its convolution has a bias all the same
    ("zamba2", {"num_mem_blocks": 2}),
    ("zamba2", {"num_mem_blocks": 2, "tie_word_embeddings": False}),
    ("zamba2", {"hybrid_layer_ids": [1, 3, 5], "layer_types": ["mamba", "hybrid"] * 3}),
    ("zamba", {"attention_hidden_size": 192}),
    ("mvp", {"use_prompt": True, "prompt_length": 7, "prompt_mid_dim": 50}),
    ("longcat_flash", {"n_routed_experts": 0, "zero_expert_num": 4}),
]
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


# T5's class ties whatever the file says: a documented departure. Types with a test of their own.
_T5 = ("t5", "mt5", "umt5", "longt5")
_FLAGS = [None, False, True]
_FLAT = [m for m in MODELS if m.model_type not in _T5 and "text_config" not in m.config]
_NESTED = [m for m in MODELS if "text_config" in m.config]


def _same_count(model: Model) -> None:
    reading = read_shape({"model_type": model.model_type, **model.config})
    counted = sum(p.numel() for p in build(model, device="meta").parameters())
    assert params_total(reading.shape) == counted


def _flagged(config: dict[str, Any], flag: bool | None) -> dict[str, Any]:
    kept = {k: v for k, v in config.items() if k != "tie_word_embeddings"}
    return kept if flag is None else kept | {"tie_word_embeddings": flag}


@pytest.mark.parametrize("flag", _FLAGS)
@pytest.mark.parametrize("model", _FLAT, ids=[f"{m.model_type}-{m.cls}" for m in _FLAT])
def test_tied_and_untied_as_the_class_has_it(model: Model, flag: bool | None) -> None:
    """Each parameter of the class counts once: a tied matrix is one object there."""
    _same_count(replace(model, config=_flagged(model.config, flag)))


@pytest.mark.parametrize("inner", _FLAGS)
@pytest.mark.parametrize("outer", _FLAGS)
@pytest.mark.parametrize("model", _NESTED, ids=[m.model_type for m in _NESTED])
def test_a_composite_ties_by_the_flag_that_its_class_takes(
    model: Model, outer: bool | None, inner: bool | None
) -> None:
    config = _flagged(model.config, outer)
    config |= {"text_config": _flagged(config["text_config"], inner)}
    changed = replace(model, config=config)
    found = audit({"model_type": model.model_type, **config})
    if outer is None and inner is False and any("ties by default" in w for w in found.warnings):
        untied = {**config, "tie_word_embeddings": False}  # released weights hold a head
        changed = replace(model, config=untied)
    reading = read_shape({"model_type": model.model_type, **config})
    counted = sum(p.numel() for p in build(changed, device="meta").parameters())
    assert params_total(reading.shape) == counted


@pytest.mark.filterwarnings("ignore")
def test_the_lists_of_composites_are_those_of_the_release() -> None:
    """A true in the text section reaches the outer flag of the forwarding classes alone."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for name, keys in json.loads(PATH.read_text())["nested"].items():
        if keys.get("text_config") not in families() or name in TEXT:
            continue
        try:
            made = CONFIG_MAPPING[name](
                tie_word_embeddings=False, text_config={"tie_word_embeddings": True,
                                                        "model_type": keys["text_config"]}
            )  # fmt: skip
        except Exception:  # some need more keys than a text section
            continue
        forwards = bool(getattr(made, "tie_word_embeddings", False))
        assert forwards == (name in FORWARDED), name


@pytest.mark.filterwarnings("ignore")
def test_the_composites_without_a_tied_head_are_those_of_the_release() -> None:
    import transformers
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES as NAMES,
    )

    nested = json.loads(PATH.read_text())["nested"]
    for name, cls in NAMES.items():
        if name in TEXT or nested.get(name, {}).get("text_config") not in families():
            continue
        cls = cls if isinstance(cls, str) else cls[0]
        keys = getattr(getattr(transformers, cls), "_tied_weights_keys", None)
        assert (not keys) == (name in NEVER), name


_MIXTURES = [
    (m, key)
    for m in MODELS
    for key in _EXPERTS
    if key in m.config and m.model_type != "jetmoe"  # its class refuses 0
]


@pytest.mark.parametrize(("model", "key"), _MIXTURES, ids=[f"{m.cls}-{k}" for m, k in _MIXTURES])
def test_no_routed_experts_leave_what_the_class_builds(model: Model, key: str) -> None:
    """A dense layer where the class asks first; else the router and the shared experts alone."""
    _same_count(replace(model, config={**model.config, key: 0}))


def test_zamba2_does_not_count_uses_under_the_other_name_of_the_list() -> None:
    """Adapters are built for the nine uses of the class's own list, and a pass then fails."""
    zamba = _changed("zamba2", {"layer_types": ["mamba", "hybrid"] * 3})
    del zamba.config["layers_block_type"]
    _same_count(zamba)


def test_a_width_that_zambas_attention_cannot_read_is_refused() -> None:
    """It reads two hidden states of 96 side by side: 192."""
    config = _changed("zamba", {"attention_hidden_size": 100}).config
    with pytest.raises(UsageError, match=r"attention_hidden_size is 100.*192"):
        read_shape({"model_type": "zamba", **config})


def _changed(model_type: str, keys: dict[str, Any]) -> Model:
    model = next(m for m in MODELS if m.model_type == model_type)
    return replace(model, config=copy.deepcopy(model.config) | keys)


@pytest.mark.parametrize(("model_type", "keys"), _CHANGES, ids=[f"{t}-{[*k]}" for t, k in _CHANGES])
def test_weights_and_cache_follow_the_class(model_type: str, keys: dict[str, Any]) -> None:
    model = _changed(model_type, keys)
    reading = read_shape({"model_type": model_type, **model.config})
    _same_count(model)
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
