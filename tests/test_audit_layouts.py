"""Cache layouts of servers that are no plain element type: FlashMLA's fp8 latents."""

from __future__ import annotations

from typing import Any

import pytest

from configurator.core.errors import UsageError
from configurator.interop.audit import audit

V3: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "vocab_size": 129280, "intermediate_size": 18432, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
}  # fmt: skip


def test_a_token_of_an_fp8_latent_takes_656_bytes_a_layer() -> None:
    # FlashMLA's README: 512 bytes of fp8, four float32 scales, 64 bf16 values of the rotary key.
    found = audit(V3, kv_dtype="fp8_ds_mla", context="1k").to_dict()
    assert found["kv_bytes_per_token"] == 61 * 656
    assert found["kv_bytes_at_context"] == 61 * 656 * 1024


def test_an_indexers_key_adds_its_bytes_and_one_scale_per_128() -> None:
    v32 = V3 | {"model_type": "deepseek_v32", "index_head_dim": 128, "index_n_heads": 64}
    found = audit(v32, kv_dtype="fp8_ds_mla", context="1k").to_dict()
    assert found["kv_bytes_per_token"] == 61 * (656 + 132)


@pytest.mark.parametrize("question", [{"cache_mode": "rebuilt"}, {}])
def test_the_layout_needs_a_latent(question: dict[str, Any]) -> None:
    llama = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
    model = V3 if question else llama
    with pytest.raises(UsageError, match="fp8_ds_mla is a layout of MLA's latents"):
        audit(model, kv_dtype="fp8_ds_mla", **question)
