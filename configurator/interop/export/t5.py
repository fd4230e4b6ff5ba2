"""Encoders and encoder-decoders of RMSNorm without biases: T5's keys."""

from __future__ import annotations

from typing import Any

from configurator.core.kinds.gqa import GroupedQuery
from configurator.interop.export.subject import Subject, refuse

__all__ = ["t5_values"]

_BUCKETS = 32  # relative positions, one weight per bucket and head


def t5_values(subject: Subject) -> tuple[dict[str, Any], list[str], int]:
    """T5's keys, and the weights that T5 has beside the geometry's."""
    shape, work = subject.case.shape, subject.case.workload
    attention, ff = shape.attention, shape.feed_forward
    both = shape.arch == "encoder-decoder"
    who = "Hugging Face (T5)"
    if not isinstance(attention, GroupedQuery) or attention.projection != "MHA":
        refuse(who, f"{attention.projection} in an {shape.arch}", "give --projection mha")
    if attention.bias != "none" or attention.qk_norm or attention.v_width != attention.d_head:
        refuse(who, "biases, QK-norm or values of another width", "leave them out")
    if ff is None or ff.kind != "dense" or ff.bias or ff.gated:
        refuse(who, "experts, gates or biases in a feed-forward", "leave them out")
    beside = (2 if both else 1) * _BUCKETS * int(attention.n_heads)
    warnings = [
        f"T5 adds {beside:,} weights for relative positions ({_BUCKETS} x {attention.n_heads} "
        f"heads{', encoder and decoder' if both else ''})"
    ]
    if both and not shape.tied:
        warnings.append("transformers 5.24 ties T5's output head whatever tie_word_embeddings says")
    values: dict[str, Any] = {
        "architectures": ["T5ForConditionalGeneration" if both else "T5EncoderModel"],
        "model_type": "t5",
        "d_model": int(shape.d_model),
        "num_layers": int(shape.n_layers),
        "num_decoder_layers": int(shape.n_layers),
        "num_heads": int(attention.n_heads),
        "d_kv": int(attention.d_head),
        "d_ff": int(ff.d_ff),
        "feed_forward_proj": "relu",
        "vocab_size": int(shape.vocab_size),
        "relative_attention_num_buckets": _BUCKETS,
        "n_positions": int((work.source_len if both else 0) or work.context),
        "tie_word_embeddings": bool(shape.tied),
        "is_encoder_decoder": both,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    }
    if not both:
        del values["num_decoder_layers"], values["decoder_start_token_id"]
    return values, warnings, beside
