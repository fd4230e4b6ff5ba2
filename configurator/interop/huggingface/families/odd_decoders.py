"""Decoders whose blocks differ from Llama's in their own way: JetMoE, ModernBERT's, Doge."""

from __future__ import annotations

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.feed_forward import dense
from configurator.interop.huggingface.rules import flagged
from configurator.interop.huggingface.scopes import every

__all__ = ["FAMILIES"]


# ---- JetMoE: experts hold queries and outputs, all share the keys and values


def _jetmoe(config: Config, family: Family, i: int, kind: str) -> Attention:
    """As many query heads as KV heads for each expert that a token visits."""
    d, kv = config.count("hidden_size"), config.count("num_key_value_heads")
    width = config.count("kv_channels", 128)
    experts, visited = config.count("num_experts"), config.count("num_experts_per_tok")
    if visited > experts:
        raise UsageError(
            f"{config.key('num_experts_per_tok')} {visited} is more than "
            f"{config.key('num_experts')} {experts}; a token visits some of the experts"
        )
    idle = (experts - visited) * 2 * kv * width * d
    return GroupedQuery(
        d_model=d, n_heads=kv * visited, n_kv_heads=kv, d_head=width,
        other_params=idle + d * experts + d,
    )  # fmt: skip


# ---- ModernBERT as a decoder: half of ``local_attention`` looks back


def _modern_pattern(config: Config, n: int) -> list[str]:
    local = config.maybe("local_attention") or 0
    config.values = {**config.values, "sliding_window": local // 2}
    return every(config.count("global_attn_every_n_layers", 3), n, full_at=0)


def _modern_extra(config: Config) -> int:
    """The head's transform and norm, and its bias; the first layer has no norm of its own."""
    d = config.count("hidden_size")
    norm = d * (2 if config.flag("norm_bias") else 1)
    head = d * d + d * config.flag("classifier_bias") + norm + d * config.flag("norm_bias")
    return head + config.count("vocab_size") * config.flag("decoder_bias", True)


# ---- Doge: a mask that is learned, and scales on the residual stream


def _doge_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    plain = grouped(config, family, i)
    kv, width = int(plain.n_kv_heads), int(plain.d_head)
    extra = kv + kv * width * kv + kv * config.flag("attention_bias")
    return grouped(config, family, i, other_params=extra)


def _doge_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    """Dense, with very many experts of one row and one column each beside it if asked."""
    plain = dense(config, family, i)
    if plain is None or not config.flag("is_moe"):
        return plain
    d, experts = config.count("hidden_size"), config.count("num_experts")
    keys = int(experts**0.5)
    return FeedForward(
        d_model=d, d_ff=plain.d_ff, bias=plain.bias, other_params=2 * d * keys + 2 * experts * d
    )


FAMILIES = {
    "jetmoe": Family(
        attention=_jetmoe, tied=True,
        mixture=Mixture(width="intermediate_size", other=lambda c: c.count("hidden_size")),
        notes=(
            "active parameters count every expert of the attention, of which a token visits some",
        ),
    ),
    "modernbert-decoder": Family(
        norm="bare", bias="attention_bias", mlp_bias=flagged("mlp_bias"), tied=True,
        pattern=_modern_pattern, extra=_modern_extra,
        layer_extra=lambda c, i, kind: 2 * c.count("hidden_size") * c.flag("norm_bias"),
    ),
    "doge": Family(
        qk_norm="head", mlp_bias=flagged("mlp_bias"), attention=_doge_attention,
        feed_forward=_doge_feed_forward,
        layer_extra=lambda c, i, kind: 2 * c.count("hidden_size"),
    ),
}  # fmt: skip
