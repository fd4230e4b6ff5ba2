"""Configurations of families whose members differ in a few numbers alone."""

from __future__ import annotations

from typing import Any

__all__ = ["bert", "bloom", "gemma3", "gpt2", "llama", "neox", "t5", "whisper"]


def llama(model_type: str, layers: int, d: int, ff: int, vocab: int, heads: int,
           kv: int | None = None, **more: Any) -> dict[str, Any]:  # fmt: skip
    config = {
        "model_type": model_type, "num_hidden_layers": layers, "hidden_size": d,
        "intermediate_size": ff, "vocab_size": vocab, "num_attention_heads": heads,
    }  # fmt: skip
    if kv is not None:
        config["num_key_value_heads"] = kv
    return config | more


def gpt2(layers: int, d: int, heads: int) -> dict[str, Any]:
    return {"model_type": "gpt2", "n_layer": layers, "n_embd": d, "n_head": heads,
            "n_positions": 1024, "vocab_size": 50257}  # fmt: skip


def neox(layers: int, d: int, heads: int, vocab: int) -> dict[str, Any]:
    return {"model_type": "gpt_neox", "num_hidden_layers": layers, "hidden_size": d,
            "num_attention_heads": heads, "intermediate_size": 4 * d, "vocab_size": vocab,
            "tie_word_embeddings": False}  # fmt: skip


def bloom(layers: int, d: int, heads: int) -> dict[str, Any]:
    return {"model_type": "bloom", "n_layer": layers, "n_embed": d, "num_attention_heads": heads,
            "vocab_size": 250880}  # fmt: skip


def whisper(layers: int, d: int, heads: int) -> dict[str, Any]:
    return {"model_type": "whisper", "d_model": d, "encoder_layers": layers,
            "decoder_layers": layers, "encoder_attention_heads": heads,
            "decoder_attention_heads": heads, "encoder_ffn_dim": 4 * d, "decoder_ffn_dim": 4 * d,
            "num_mel_bins": 80, "vocab_size": 51865}  # fmt: skip


def bert(layers: int, d: int, heads: int, **more: Any) -> dict[str, Any]:
    return {"model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": layers,
            "hidden_size": d, "num_attention_heads": heads, "intermediate_size": 4 * d,
            "vocab_size": 30522, "max_position_embeddings": 512, **more}  # fmt: skip


def t5(layers: int, d: int, ff: int, heads: int, d_kv: int, v11: bool) -> dict[str, Any]:
    more = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False} if v11 else {}
    return {"model_type": "t5", "d_model": d, "d_kv": d_kv, "d_ff": ff, "num_heads": heads,
            "num_layers": layers, "vocab_size": 32128, **more}  # fmt: skip


def gemma3(
    layers: int, d: int, ff: int, heads: int, kv: int, width: int, window: int
) -> dict[str, Any]:
    return llama("gemma3_text", layers, d, ff, 262144, heads, kv, head_dim=width,
                  sliding_window=window)  # fmt: skip
