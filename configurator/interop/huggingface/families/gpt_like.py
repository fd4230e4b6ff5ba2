"""Decoders of GPT's make: layer norms with shifts, plain feed-forwards, mostly biases."""

from __future__ import annotations

from configurator.core.kinds import Attention
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family
from configurator.interop.huggingface.feed_forward import dense
from configurator.interop.huggingface.rules import bias_if, flagged, positions

__all__ = ["FAMILIES"]


def _vocab(config: Config) -> int:
    return config.count("vocab_size")


def _falcon_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    """Only the newer decoder reads ``num_kv_heads``; the older one has 1 or as many as queries."""
    heads = config.count("num_attention_heads")
    if config.flag("new_decoder_architecture"):
        kv = config.maybe("num_key_value_heads") or heads
        if kv < heads:
            config.notes.warn(
                f"transformers copies keys and values to all {heads} query heads before it caches "
                f"them here, {heads // kv} times as much; servers keep the {kv} KV heads, and so "
                f"does this count"
            )
    else:
        config.entry("num_key_value_heads", i)  # plays no part, but must be a count
        kv = 1 if config.flag("multi_query", True) else heads
    return grouped(config, family, i, kv_heads=kv)


def _falcon_norms(config: Config) -> int:
    if not config.flag("parallel_attn", True):
        return 2
    default = 2 if config.flag("new_decoder_architecture") else 1
    return 2 if config.count("num_ln_in_parallel_attn", default) == 2 else 1


def _bigcode_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    heads = config.count("num_attention_heads")
    return grouped(config, family, i, kv_heads=1 if config.flag("multi_query", True) else heads)


def _mpt_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    """KV heads stand in ``attn_config``: ``kv_n_heads``, or one where it is multi-query."""
    heads = config.count("num_attention_heads")
    inner = config.section("attn_config")
    kv = heads
    if inner is not None:
        multi_query = inner.text("attn_type", "multihead_attention") == "multiquery_attention"
        kv = inner.maybe("kv_n_heads") or (1 if multi_query else heads)
    key = inner.key("kv_n_heads") if inner is not None else ""
    return grouped(config, family, i, heads=heads, kv_heads=kv, kv_key=key)


def _opt_extra(config: Config) -> int:
    """Positions (two rows spare), and projections where the embedding is narrower."""
    d, narrow = config.count("hidden_size"), _opt_embedding(config)
    return positions(2048, 2)(config) + (2 * d * narrow if narrow != d else 0) + _opt_final(config)


def _opt_final(config: Config) -> int:
    """No final norm where norms follow the blocks, and in checkpoints that say so."""
    kept = config.flag("do_layer_norm_before", True) and not config.flag("_remove_final_layer_norm")
    return 2 * config.count("hidden_size") if kept and _opt_scaled(config) else 0


def _opt_scaled(config: Config) -> bool:
    return config.flag("layer_norm_elementwise_affine", True)


def _opt_embedding(config: Config) -> int:
    return config.maybe("word_embed_proj_dim") or config.count("hidden_size")


_GPT = {"norm": "layer", "bias": "all", "gated": False, "mlp_bias": True, "tied": True}

FAMILIES = {
    "gpt2": Family(**_GPT, extra=positions(1024)),  # type: ignore[arg-type]
    "gpt_bigcode": Family(
        **_GPT, extra=positions(1024), attention=_bigcode_attention,  # type: ignore[arg-type]
    ),
    "openai-gpt": Family(**_GPT, final_norms=0, extra=positions(512)),  # type: ignore[arg-type]
    "gpt_neo": Family(**(_GPT | {"bias": "o"}), extra=positions(2048),  # type: ignore[arg-type]
                      pattern=lambda config, n: ["full_attention"] * n),
    "gpt_neox": Family(
        norm="layer", bias=bias_if("attention_bias", "all", True), gated=False, mlp_bias=True
    ),
    "gpt_neox_japanese": Family(
        norm="layer", bias="none", gated=False, tied=True,
        layer_extra=lambda config, i, kind: config.count("hidden_size") * (
            i == config.count("num_hidden_layers") - 1
        ),
        feed_forward=lambda config, family, i: dense(
            config, family, i,
            config.count("hidden_size") * config.count("intermediate_multiple_size", 4),
        ),
    ),
    "gptj": Family(norm="layer", norms=1, bias="none", gated=False, mlp_bias=True, extra=_vocab),
    "codegen": Family(
        norm="layer", norms=1, bias="none", gated=False, mlp_bias=True, extra=_vocab
    ),
    "bloom": Family(**_GPT, extra=lambda c: 2 * c.count("hidden_size")),  # type: ignore[arg-type]
    "falcon": Family(
        norm="layer", norms=_falcon_norms, bias=bias_if("bias", "all"), gated=False,
        mlp_bias=flagged("bias"), attention=_falcon_attention, tied=True,
    ),
    "mpt": Family(norm="bare", bias="none", gated=False, attention=_mpt_attention, tied=True),
    "opt": Family(
        norm="layer", bias=bias_if("enable_bias", "all", True), gated=False,
        mlp_bias=flagged("enable_bias", True), tied=True, extra=_opt_extra,
        d_embedding=_opt_embedding, final_norms=0,
        norms=lambda config: 2 if _opt_scaled(config) else 0,
    ),
    "xglm": Family(**_GPT),  # type: ignore[arg-type]
    "biogpt": Family(**_GPT, extra=positions(1024, 2)),  # type: ignore[arg-type]
    "ctrl": Family(**_GPT, extra=_vocab),  # type: ignore[arg-type]
}  # fmt: skip
FAMILIES["gpt-sw3"] = FAMILIES["gpt2"]
