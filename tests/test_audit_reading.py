"""How keys are read: missing, null, aliased, overruled by flags, nested, listed per layer."""

from __future__ import annotations

from typing import Any

import pytest

from configurator.core.audit_report import Audit
from configurator.core.errors import UsageError
from configurator.interop.audit import audit

SIZES: dict[str, Any] = {
    "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8,
    "intermediate_size": 1024, "vocab_size": 1000,
}  # fmt: skip


def read(model_type: str, drop: tuple[str, ...] = (), **more: Any) -> Audit:
    values = {"model_type": model_type, **SIZES, **more}
    return audit({k: v for k, v in values.items() if k not in drop}, context=1024)


@pytest.mark.parametrize(
    ("model_type", "more", "kv", "width"),
    [
        # A missing key means what the class of transformers 5.24 fills in, not always n_heads.
        ("llama", {}, 8, 64),
        ("llama", {"num_key_value_heads": None}, 8, 64),
        ("mistral", {}, 8, 64),
        ("mistral", {"num_key_value_heads": None}, 8, 64),
        ("starcoder2", {}, 2, 64),
        ("gemma3_text", {}, 4, 256),
        ("gemma3_text", {"head_dim": None}, 4, 64),
        ("qwen3", {"num_key_value_heads": 2}, 2, 128),
        ("qwen3", {"num_key_value_heads": 2, "head_dim": 64}, 2, 64),
        ("qwen2", {"num_key_value_heads": 2}, 2, 64),
        ("gemma", {"num_key_value_heads": 1}, 1, 256),
        ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}, 8, 64),
        # Flags overrule keys.
        ("falcon", {"multi_query": True, "num_kv_heads": 4}, 1, 64),
        ("falcon", {"multi_query": False, "num_kv_heads": 8}, 8, 64),
        ("falcon", {"new_decoder_architecture": True, "multi_query": True, "num_kv_heads": 4}, 4,
         64),
        ("gpt_bigcode", {"multi_query": True}, 1, 64),
        ("gpt_bigcode", {"multi_query": False}, 8, 64),
        ("chatglm", {"multi_query_attention": True, "multi_query_group_num": 2}, 2, 64),
        ("chatglm", {"multi_query_attention": False, "multi_query_group_num": 2}, 8, 64),
        ("mpt", {"attn_config": {"kv_n_heads": 2}}, 2, 64),
        ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}, 1, 64),
    ],
)  # fmt: skip
def test_kv_heads_and_widths(model_type: str, more: dict[str, Any], kv: int, width: int) -> None:
    found = read(model_type, **more)
    assert (found.n_kv_heads, found.d_head) == (kv, width)
    assert found.kv_bytes_per_token == 8 * 2 * kv * width * 2


@pytest.mark.parametrize(
    "names",
    [
        {"n_layer": 8, "n_embd": 512, "n_head": 8, "n_inner": 1024, "n_kv_heads": 2},
        {"n_layers": 8, "d_model": 512, "n_heads": 8, "d_ff": 1024, "num_kv_heads": 2},
        {"num_layers": 8, "dim": 512, "num_heads": 8, "ffn_dim": 1024, "n_head_kv": 2},
        {"num_layers": 8, "hidden_size": 512, "num_attention_heads": 8,
         "ffn_hidden_size": 1024, "num_query_groups": 2, "kv_channels": 64},
    ],
)  # fmt: skip
def test_other_names_for_the_same_sizes(names: dict[str, int]) -> None:
    found = audit({"model_type": "new", "vocab_size": 1000, **names})
    plain = read("new", num_key_value_heads=2)
    assert (found.n_heads, found.n_kv_heads, found.d_head) == (8, 2, 64)
    assert found.params_total == plain.params_total
    assert found.kv_bytes_per_token == plain.kv_bytes_per_token == 8 * 2 * 2 * 64 * 2


def test_an_unknown_type_is_answered_and_says_what_was_assumed() -> None:
    found = read("brand_new")
    assert not found.known
    assert found.projection == "MHA"
    text = found.warnings[0]
    for part in ("'brand_new' is not known", "as many KV heads as query heads", "no biases",
                 "a head width of hidden_size / heads", "check the parameters"):  # fmt: skip
        assert part in text
    nameless = audit({**SIZES, "num_key_value_heads": 4})
    assert "the file states no model_type" in nameless.warnings[0]
    assert nameless.n_kv_heads == 4


def test_a_default_that_cannot_be_is_named_as_a_default() -> None:
    with pytest.raises(UsageError, match=r"not in the file; the default of qwen3 is\) 32 is more"):
        read("qwen3")


def test_what_a_class_fills_in_is_said() -> None:
    assert "num_key_value_heads 2" in read("starcoder2").warnings[0]


@pytest.mark.parametrize(
    ("model_type", "more", "windowed"),
    [
        ("mistral", {"sliding_window": 128}, 8),
        ("mistral", {"sliding_window": None}, 0),
        ("phi3", {"sliding_window": 128}, 8),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": False, "num_key_value_heads": 2},
         0),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": True, "max_window_layers": 6,
                   "num_key_value_heads": 2}, 2),
        ("gemma2", {"sliding_window": 128, "num_key_value_heads": 4}, 4),
        ("gemma3_text", {"sliding_window": 128}, 7),  # every sixth is full
        ("gemma3_text", {"sliding_window": 128, "sliding_window_pattern": 4}, 6),
        ("cohere2", {"sliding_window": 128, "sliding_window_pattern": 4}, 6),
        ("gpt_oss", {"sliding_window": 128, "num_local_experts": 4, "num_experts_per_tok": 2}, 4),
        ("qwen3", {"num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 128,
                   "layer_types": ["sliding_attention"] * 3 + ["full_attention"] * 5}, 3),
    ],
)  # fmt: skip
def test_windows(model_type: str, more: dict[str, Any], windowed: int) -> None:
    found = read(model_type, **more)
    assert sum(g.layers for g in found.layer_groups if g.scope == "window") == windowed
    token = found.kv_bytes_per_token // 8
    assert found.kv_bytes_at_context == token * (windowed * 128 + (8 - windowed) * 1024)
    assert found.kv_bytes_per_token_past_window == token * (8 - windowed)
    if windowed:
        assert found.kv_bytes_if_windowed_layers_reserved_full == token * 8 * 1024


@pytest.mark.parametrize(
    ("outer", "inner", "tied"),
    [
        ({}, {}, False),
        ({"tie_word_embeddings": True}, {}, True),
        ({}, {"tie_word_embeddings": True}, True),
        ({"tie_word_embeddings": False}, {"tie_word_embeddings": True}, True),
    ],
)
def test_llava_hands_a_true_of_its_text_section_on(
    outer: dict[str, bool], inner: dict[str, bool], tied: bool
) -> None:
    text = {"model_type": "llama", **SIZES, **inner}
    found = audit({"model_type": "llava", "text_config": text, **outer})
    assert found.tied_embeddings is tied


@pytest.mark.parametrize(
    ("outer_type", "outer", "inner", "tied"),
    [
        ("llava_next", {}, {"tie_word_embeddings": True}, False),  # its own flag alone
        ("llava_next", {"tie_word_embeddings": True}, {"tie_word_embeddings": False}, True),
        ("llama4", {"tie_word_embeddings": True}, {}, False),  # the text section's alone
        ("qwen2_audio", {"tie_word_embeddings": True}, {"tie_word_embeddings": True}, False),
        ("perception_lm", {}, {"tie_word_embeddings": True}, True),
        ("another", {}, {"tie_word_embeddings": True}, True),  # the outermost statement
        ("another", {"tie_word_embeddings": False}, {"tie_word_embeddings": True}, False),
        # By default tied; weights released with a false in the text section hold a head.
        ("internvl", {}, {}, True),
        ("internvl", {}, {"tie_word_embeddings": False}, False),
        ("internvl", {"tie_word_embeddings": True}, {"tie_word_embeddings": False}, True),
    ],
)
def test_which_flag_ties_the_head_is_the_class_s_affair(
    outer_type: str, outer: dict[str, bool], inner: dict[str, bool], tied: bool
) -> None:
    text = {**SIZES, **inner, "model_type": "llama4_text" if outer_type == "llama4" else "llama"}
    found = audit({"model_type": outer_type, "text_config": text, **outer})
    assert found.tied_embeddings is tied


def test_a_thinker_s_own_flag_ties_its_head() -> None:
    text = {**SIZES, "model_type": "qwen2_5_omni_text", "tie_word_embeddings": True}
    for flag in (False, True):
        thinker = {"text_config": text, "tie_word_embeddings": flag}
        found = audit({"model_type": "qwen2_5_omni", "thinker_config": thinker})
        assert found.tied_embeddings is flag


def test_text_models_are_found_two_levels_deep_and_their_keys_named() -> None:
    text = {"model_type": "qwen2", **SIZES, "num_key_value_heads": 2}
    nested = {"model_type": "outer", "thinker_config": {"text_config": text}}
    assert audit(nested).n_kv_heads == 2
    text["num_key_value_heads"] = 3
    with pytest.raises(UsageError, match=r"thinker_config\.text_config\.num_key_value_heads 3"):
        audit(nested)


def test_a_tower_is_not_the_model() -> None:
    tower = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {"model_type": "llama", **SIZES}
    found = audit({"model_type": "x", "vision_config": tower, "text_config": text})
    assert (found.n_heads, found.vision_tower_heads) == (8, 4)
    assert any("vision tower" in w for w in found.warnings)


def test_lists_per_layer() -> None:
    listed = {"model_type": "openelm", "model_dim": 512, "num_transformer_layers": 4,
              "head_dim": 64, "num_query_heads": [4, 4, 8, 8], "num_kv_heads": [1, 1, 2, 2],
              "ffn_multipliers": [1.0, 2.0, 3.0, 4.0], "vocab_size": 1000}  # fmt: skip
    found = audit(listed)
    assert found.n_heads == [4, 4, 8, 8]
    assert found.n_kv_heads == [1, 1, 2, 2]
    assert found.kv_bytes_per_token == 2 * 2 * 64 * (1 + 1 + 2 + 2)
    assert found.valid_tp["sharded"] == [1]
    assert found.valid_tp["with_kv_replication"] == [1, 2, 4]
    with pytest.raises(UsageError, match="lists 3 layers"):
        audit({**listed, "num_kv_heads": [1, 1, 2]})


def test_patterns_of_letters() -> None:
    found = audit(
        {"model_type": "nemotron_h", "hidden_size": 512, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 64, "hybrid_override_pattern": "M-M*-M-M*-",
         "vocab_size": 1000, "intermediate_size": 1024, "mamba_num_heads": 8,
         "mamba_head_dim": 64, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4}
    )  # fmt: skip
    assert found.kv_layers == 2
    assert found.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2
    assert found.fixed_state_per_sequence is not None
    assert found.fixed_state_per_sequence["linear_layers"] == 4
    assert found.fixed_state_per_sequence["recurrent_values_per_layer"] == 8 * 64 * 16


def test_experts_total_and_active() -> None:
    found = read("mixtral", num_local_experts=4, num_experts_per_tok=2, num_key_value_heads=8)
    expert = 3 * 512 * 1024
    assert found.params_total is not None
    assert found.params_active_per_token == found.params_total - 8 * 2 * expert


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_attention_heads": -8}, "num_attention_heads is -8"),
        ({"num_attention_heads": "8"}, "num_attention_heads is '8'"),
        ({"num_attention_heads": 8.5}, "num_attention_heads is 8.5"),
        ({"num_attention_heads": True}, "num_attention_heads is True"),
        ({"num_attention_heads": {}}, "num_attention_heads is an object of 0"),
        ({"num_attention_heads": 10**50}, "num_attention_heads is a whole number above 10^40"),
        ({"num_key_value_heads": 3}, "8 is not a multiple of num_key_value_heads 3; use 2 or 4"),
        ({"num_key_value_heads": 16}, "16 is more than num_attention_heads 8"),
        ({"hidden_size": 500}, "500 is not a multiple of num_attention_heads 8"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types"),
        ({"vocab_size": [1]}, "vocab_size is a list of 1"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"intermediate_size": -1}, "intermediate_size is -1"),
        ({"model_type": 7}, "model_type is 7"),
        ({"model_type": "a\nb"}, "is not a name"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(more: dict[str, Any], said: str) -> None:
    values = {"model_type": "ministral", **SIZES, **more}
    with pytest.raises(UsageError) as caught:
        audit(values)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whole_fractions_are_whole_numbers() -> None:
    assert read("llama", num_attention_heads=8.0).n_heads == 8


def test_a_control_letter_in_a_model_type_is_refused() -> None:
    # Found by fuzzing: the name went into a warning as it was and broke its line.
    with pytest.raises(UsageError, match="is not a name"):
        audit({"model_type": "\x1e", "text_config": {"model_type": "llama", **SIZES}})


def test_heads_narrower_than_one_value_are_refused() -> None:
    # Found by fuzzing: Zamba divides a width of its own by the heads, and rules divided by that.
    with pytest.raises(UsageError, match="num_attention_heads 6000 is more than hidden_size has"):
        audit(
            {"model_type": "zamba", "vocab_size": 500, "hidden_size": 96, "num_hidden_layers": 9,
             "num_attention_heads": 6000, "num_key_value_heads": 6, "mamba_d_state": 8,
             "n_mamba_heads": 2}
        )  # fmt: skip


@pytest.mark.parametrize("sides", [{}, {"encoder": {}}, {"encoder": {"num_hidden_layers": 2}}])
def test_a_pair_of_models_states_the_sizes_of_both(sides: dict[str, Any]) -> None:
    # Found by fuzzing: without them every default of both classes went into one warning.
    with pytest.raises(UsageError, match=r"is missing; (t5gemma|state)"):
        audit({"model_type": "llava", "text_config": {"model_type": "t5gemma", **sides}})
