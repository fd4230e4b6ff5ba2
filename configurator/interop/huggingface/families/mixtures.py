"""Mixtures of experts with ordinary attention."""

from __future__ import annotations

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.feed_forward import mixture_of
from configurator.interop.huggingface.rules import (
    alternate,
    bias_if,
    flagged,
    from_first,
    full_every,
    only_listed,
    picks,
    tail_windows,
)
from configurator.interop.huggingface.scopes import CHUNK, FULL, WINDOW, every, window_size

__all__ = ["FAMILIES"]


def _dbrx_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    """The flat ``num_key_value_heads`` of the class is 1 and plays no part."""
    inner = config.section("attn_config")
    kv = (inner.maybe("kv_n_heads") if inner is not None else None) or 1
    key = inner.key("kv_n_heads") if inner is not None else ""
    return grouped(config, family, i, kv_heads=kv, kv_key=key)


def _dbrx_feed_forward(config: Config, family: Family, i: int) -> FeedForward:
    inner = config.section("ffn_config")
    if inner is None:
        raise UsageError(f"{config.named('ffn_config')} is missing; a DBRX model states it")
    d, experts = config.count("hidden_size"), inner.count("num_experts", 4)
    visited = inner.count("num_experts_per_tok", 1)
    if visited > experts:
        raise UsageError(
            f"{inner.key('num_experts_per_tok')} {visited} is more than "
            f"{inner.key('num_experts')} {experts}"
        )
    return FeedForward(
        d_model=d,
        d_ff=inner.count("intermediate_size", 3584),
        n_experts=experts,
        experts_per_token=visited,
    )


def _llama4_pattern(config: Config, n: int) -> list[str]:
    """Chunks where a layer rotates its positions, everything where it does not (every 4th)."""
    if not config.maybe("attention_chunk_size"):
        return [FULL] * n
    rotates = (
        config.per_layer("no_rope_layers", n, least=0)
        if config.sequence("no_rope_layers")
        else None
    )
    if rotates is None:
        interval = config.count("no_rope_layer_interval", 4)
        rotates = [int((i + 1) % interval != 0) for i in range(n)]
    return [CHUNK if r else FULL for r in rotates]


def _llama4_sparse(config: Config, i: int) -> bool:
    listed = config.wholes("moe_layers")
    if listed is not None:
        return i in listed
    return (i + 1) % config.count("interleave_moe_layer_step", 1) == 0


def _ernie_sparse(config: Config, i: int) -> bool:
    first = config.count("moe_layer_start_index", 1, least=0)
    last = config.whole("moe_layer_end_index", config.values.get("moe_layer_end_index", -1), -1)
    last = config.count("num_hidden_layers") - 1 if last == -1 else last
    return first <= i <= last and (i + 1) % config.count("moe_layer_interval", 1) == 0


def _granite_shared(config: Config, family: Family, i: int) -> FeedForward:
    """Experts of ``intermediate_size`` and a shared one of ``shared_intermediate_size``, if any."""
    return mixture_of(config, Mixture(width="intermediate_size", shared="size"), i)


def _cohere2_moe_pattern(config: Config, n: int) -> list[str]:
    dense = config.maybe("first_k_dense_replace", least=0) or 0
    prefix = config.count("prefix_dense_sliding_window_pattern", 1)
    period = config.count("sliding_window_pattern", 4)
    head = [FULL if (i + 1) % prefix == 0 else WINDOW for i in range(min(dense, n))]
    return head + [FULL if (i + 1) % period == 0 else WINDOW for i in range(n - len(head))]


def _laguna_gate(config: Config) -> str:
    gating = config.values.get("gating", True)
    return "head" if gating is True or gating == "per-head" else "width"


def _laguna_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    n = config.count("num_hidden_layers")
    listed = config.per_layer("num_attention_heads_per_layer", n)
    return grouped(config, family, i, heads=listed[i] if listed else None)


def _qwen2_moe_pattern(config: Config, n: int) -> list[str]:
    """Every other layer below ``max_window_layers``, as the class of transformers 5.24 has it."""
    first = config.count("max_window_layers", n, least=0) if window_size(config) else 0
    return [WINDOW if i % 2 == 0 and i < first else FULL for i in range(n)]


_ALL = Mixture(width="intermediate_size")
_COUNTED = Mixture(shared="count")

FAMILIES = {
    "mixtral": Family(bias="none", mixture=_ALL, missing_null="warn"),
    "phimoe": Family(
        norm="layer", mixture=_ALL,
        extra=lambda c: c.count("vocab_size") if c.flag("lm_head_bias") else 0,
    ),
    "qwen2_moe": Family(
        bias=bias_if("qkv_bias", "qkv", True), pattern=_qwen2_moe_pattern,
        mixture=Mixture(shared="size", shared_gate=True, dense_at_zero=True),
    ),
    "qwen3_moe": Family(qk_norm="head", mixture=Mixture(dense_at_zero=True)),
    "olmoe": Family(qk_norm="width", mixture=_ALL),
    "flex_olmo": Family(qk_norm="width", mixture=_ALL),
    "granitemoe": Family(mixture=_ALL),
    "granitemoeshared": Family(feed_forward=_granite_shared),
    "granitemoe_swa": Family(mixture=_ALL, sinks=True, pattern=from_first(4)),
    "dbrx": Family(
        norm="bare", bias="none", attention=_dbrx_attention, feed_forward=_dbrx_feed_forward
    ),
    "gpt_oss": Family(
        bias=bias_if("attention_bias", "all", True), sinks=True, pattern=alternate,
        mixture=Mixture(width="intermediate_size", router_bias=True, bias=True),
    ),
    "llama4_text": Family(
        pattern=_llama4_pattern,
        mixture=Mixture(width="intermediate_size", shared="one", sparse=_llama4_sparse,
                        dense_width="intermediate_size_mlp"),
        notes=(
            "a chunked layer attends inside its chunk only; its cache is counted as a window of "
            "one chunk, as transformers allocates it",
        ),
    ),
    "glm4_moe": Family(
        bias=bias_if("attention_bias", "qkv"), qk_norm=picks("use_qk_norm", "head", "none"),
        mixture=_COUNTED,
    ),
    "minimax_m2": Family(bias="none", qk_norm="width", mixture=_ALL),
    "hunyuan_v1_moe": Family(qk_norm="head", mixture=Mixture(
        width="intermediate_size", shared="one", dense_at_zero=True)),
    "ernie4_5_moe": Family(
        bias=bias_if("use_bias", "all"), mlp_bias=flagged("use_bias"), tied=True,
        mixture=Mixture(shared="count", sparse=_ernie_sparse, correction_bias=True,
                        shared_bias=flagged("use_bias")),
        extra=lambda c: c.count("vocab_size") if c.flag("use_bias") else 0,
    ),
    "dots1": Family(qk_norm="head", mixture=_COUNTED, pattern=tail_windows),
    "afmoe": Family(
        qk_norm="head", gate="width", norms=4,
        pattern=full_every("global_attn_every_n_layers", 4),
        mixture=Mixture(shared="count", correction_bias=True),
    ),
    "exaone_moe": Family(
        bias="none", qk_norm="head", mixture=_COUNTED,
        pattern=full_every("sliding_window_pattern", 4),
    ),
    "solar_open": Family(bias=bias_if("attention_bias", "qkv"), mixture=_COUNTED),
    "cohere2_moe": Family(
        norm="bare", norms=1, tied=True, pattern=_cohere2_moe_pattern,
        mixture=Mixture(width="intermediate_size", shared="count"),
    ),
    "aria_text": Family(
        mixture=Mixture(width="intermediate_size", shared="count",
                        shared_bias=flagged("mlp_bias")),
    ),
    "hy_v3": Family(
        qk_norm="head", mlp_bias=flagged("mlp_bias"),
        mixture=Mixture(shared="count", first_dense=1, shared_bias=flagged("mlp_bias")),
    ),
    "mellum": Family(qk_norm="head", mixture=Mixture(), pattern=only_listed),
    "sarvam_moe": Family(
        bias=bias_if("attention_bias", "qkv"), qk_norm=picks("use_qk_norm", "head", "none", True),
        mixture=_COUNTED,
    ),
    "kolibri1": Family(
        qk_norm="head", norms=4, pattern=lambda config, n: every(5, n),
        mixture=Mixture(shared="size"),
    ),
    "laguna": Family(
        qk_norm="head", gate=_laguna_gate,
        mixture=Mixture(shared="size", first_dense=1, correction_bias=True),
        attention=_laguna_attention, pattern=lambda config, n: [FULL] * n,
    ),
}  # fmt: skip
