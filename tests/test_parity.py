"""Our counts against the model classes of transformers: weights, cache tensors, cache bytes.

Weights are counted on the meta device. Cache tensors come from a real forward pass of 40 tokens
on a small model, layer by layer. The table of what is proven is ``outputs/parity.md``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from parity_check import (
    build,
    cache_after_forward,
    expected_layers,
    observed_layers,
    state_bytes,
    static_bytes,
    table,
)
from parity_models import MODELS, TOKENS, WINDOW, Model

from configurator.core.cost import params_total
from configurator.interop.audit import audit
from configurator.interop.huggingface import read_shape

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
_NAMES = [f"{m.model_type}-{m.cls}" for m in MODELS]
_FED = [m for m in MODELS if m.feed]

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers and torch, not ours


def _values(model: Model) -> dict[str, Any]:
    return {"model_type": model.model_type, **model.config}


def test_the_classes_are_many_and_distinct() -> None:
    assert len({m.cls for m in MODELS}) == len(MODELS) >= 45


@pytest.mark.parametrize("model", MODELS, ids=_NAMES)
def test_parameters_equal_to_the_last_one(model: Model) -> None:
    reading = read_shape(_values(model))
    assert reading.known
    assert not reading.unknown
    counted = sum(p.numel() for p in build(model, device="meta").parameters())
    assert params_total(reading.shape) == counted


@pytest.mark.parametrize("model", _FED, ids=[f"{m.model_type}-{m.cls}" for m in _FED])
def test_cache_tensors_layer_by_layer(model: Model) -> None:
    reading = read_shape(_values(model))
    cache = cache_after_forward(model)
    assert observed_layers(cache) == expected_layers(reading, model, TOKENS)


_STATEFUL = [m for m in _FED if read_shape(_values(m)).states]


@pytest.mark.parametrize("model", _STATEFUL, ids=[m.model_type for m in _STATEFUL])
def test_bytes_of_the_fixed_state_in_bf16(model: Model) -> None:
    state = audit(_values(model)).fixed_state_per_sequence
    assert state is not None
    cache = cache_after_forward(model, "bfloat16")
    assert state["bytes_in_transformers_5_24"] == state_bytes(cache)


_STATIC = [m for m in MODELS if m.model_type in (
    "llama", "mistral", "qwen2", "gemma2", "gemma3_text", "gpt_oss", "cohere2", "olmo3",
    "llama4_text", "mimo_v2_flash", "deepseek_v3", "exaone4", "falcon", "gpt_bigcode", "jamba",
)]  # fmt: skip


@pytest.mark.parametrize("context", [WINDOW // 2, WINDOW, WINDOW + 1, 3 * WINDOW])
@pytest.mark.parametrize("model", _STATIC, ids=[m.model_type for m in _STATIC])
def test_bytes_of_a_static_cache_on_both_sides_of_the_window(model: Model, context: int) -> None:
    """A static cache of transformers holds exactly min(context, window) slots a layer."""
    answer = audit(_values(model), context=context, kv_dtype="fp32")
    assert answer.kv_bytes_at_context == static_bytes(model, context)


def test_the_checked_in_table_is_that_of_this_code() -> None:
    path = Path(__file__).resolve().parents[1] / "outputs" / "parity.md"
    assert path.read_text(encoding="utf-8") == table(), "run: python tests/parity_check.py"
