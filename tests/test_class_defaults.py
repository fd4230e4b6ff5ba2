"""The table of class defaults is what the installed transformers says."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from class_defaults import PATH, text

from configurator.interop.huggingface.defaults import class_defaults, nested_type


@pytest.mark.filterwarnings("ignore")
def test_the_table_is_current() -> None:
    if not version("transformers").startswith("5.24."):
        pytest.skip("the table is that of transformers 5.24")
    assert PATH.read_text(encoding="utf-8") == text(), "run: python tests/class_defaults.py"


@pytest.mark.parametrize(
    ("model_type", "key", "value"),
    [
        ("mistral", "num_key_value_heads", 8),
        ("mistral", "sliding_window", 4096),
        ("qwen2", "num_key_value_heads", 32),
        ("gemma", "num_key_value_heads", 16),
        ("gemma2", "head_dim", 256),
        ("starcoder2", "num_key_value_heads", 2),
        ("smollm3", "num_key_value_heads", 4),
        ("glm", "head_dim", 128),
        ("llama", "tie_word_embeddings", False),
        ("gpt2", "tie_word_embeddings", True),
    ],
)
def test_a_missing_key_means_what_the_class_says(model_type: str, key: str, value: object) -> None:
    assert class_defaults(model_type)[key] == value


def test_llama_has_no_default_for_kv_heads() -> None:
    assert "num_key_value_heads" not in class_defaults("llama")


def test_nested_levels_without_a_type_have_one() -> None:
    assert nested_type("gemma3", "text_config") == "gemma3_text"
    assert nested_type("gemma3", "vision_config") == "siglip_vision_model"
