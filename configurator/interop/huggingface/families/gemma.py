"""Gemma from 2 on: four norms a block, windows between full layers, wide heads, shared caches."""

from __future__ import annotations

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.assemble import plain_layer
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer, Mixture
from configurator.interop.huggingface.feed_forward import dense, experts_of, mixture_of
from configurator.interop.huggingface.rules import alternate, full_every
from configurator.interop.huggingface.scopes import FULL, WINDOW, every

__all__ = ["FAMILIES"]


def _borrows(config: Config, i: int) -> bool:
    """Whether layer ``i`` is one of the last, which read an earlier layer's keys and values."""
    n = config.count("num_hidden_layers")
    shared = config.maybe("num_kv_shared_layers", least=0) or 0
    if shared >= n:
        raise UsageError(
            f"{config.named('num_kv_shared_layers')} {shared} leaves no layer of "
            f"{config.key('num_hidden_layers')} {n} that keeps a cache; it must be less"
        )
    return i >= n - shared


def _layers(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    (layer,) = plain_layer(config, family, i, kind)
    if not _borrows(config, i):
        return [layer]
    return [
        Layer(
            attention=layer.attention,
            scope=Scope("shared"),
            feed_forward=layer.feed_forward,
            norm_params=layer.norm_params,
            other_params=layer.other_params,
            label=f"reads an earlier {'full' if kind == FULL else 'windowed'} layer's cache",
        )
    ]


# ---- Gemma 3n: four residual streams (AltUp), a low-rank side path (LAuReL), per-layer inputs


def _gemma3n_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    return grouped(config, family, i, own_kv=not _borrows(config, i))


def _gemma3n_layer_extra(config: Config, i: int, kind: str) -> int:
    d, n = config.count("hidden_size"), config.count("altup_num_inputs")
    side, rank = config.count("hidden_size_per_layer_input"), config.count("laurel_rank")
    altup = d + n * n + n**3 + n * d + d
    laurel = 2 * d * rank + d
    return altup + laurel + 2 * d * side + d


def _per_layer_embeddings(config: Config, side: int) -> int:
    d, n = config.count("hidden_size"), config.count("num_hidden_layers")
    rows = config.count("vocab_size_per_layer_input")
    return (rows + d) * n * side + side


def _gemma3n_extra(config: Config) -> int:
    d, streams = config.count("hidden_size"), config.count("altup_num_inputs")
    side = config.count("hidden_size_per_layer_input")
    return _per_layer_embeddings(config, side) + 2 * (streams - 1) * d * d


# ---- Gemma 4: wider heads in full layers, values that are keys, experts beside the feed-forward


def _gemma4_pattern(config: Config, n: int) -> list[str]:
    kinds = every(6, n)
    kinds[-1] = FULL
    return kinds


def _gemma4_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    full = kind == FULL
    same = full and config.flag("attention_k_eq_v")
    kv_full = config.maybe("num_global_key_value_heads") if same else None
    return grouped(
        config, family, i, own_kv=not _borrows(config, i), value_is_key=same,
        d_head=config.count("global_head_dim", 512) if full else None,
        kv_heads=kv_full,
    )  # fmt: skip


def _gemma4_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    """Dense, twice as wide where keys are borrowed if asked; experts run beside it."""
    width = config.count("intermediate_size")
    if config.flag("use_double_wide_mlp") and _borrows(config, i):
        width *= 2
    beside = dense(config, family, i, width)
    if not config.flag("enable_moe_block") or beside is None:
        return beside
    experts, d = experts_of(config, i), config.count("hidden_size")
    if not experts:
        raise UsageError(f"{config.named('enable_moe_block')} is true but num_experts is missing")
    mixture = Mixture(other=lambda c: beside.params() + d + experts)
    return mixture_of(config, mixture, i)


def _gemma4_layer_extra(config: Config, i: int, kind: str) -> int:
    d, side = config.count("hidden_size"), _side(config)
    norms = 3 * d if config.flag("enable_moe_block") else 0
    return norms + (2 * d * side + d if side else 0)


def _side(config: Config) -> int:
    return config.maybe("hidden_size_per_layer_input", least=0) or 0


def _gemma4_extra(config: Config) -> int:
    side = _side(config)
    return _per_layer_embeddings(config, side) if side else 0


def _gemma3n_pattern(config: Config, n: int) -> list[str]:
    return [FULL if (i + 1) % 5 == 0 else WINDOW for i in range(n)]


_GEMMA2 = Family(norms=4, pattern=alternate, tied=True, missing_null="refuse")
_GEMMA3 = Family(
    norms=4, qk_norm="head", pattern=full_every("sliding_window_pattern", 6), tied=True,
    missing_null="refuse",
)  # fmt: skip
_GEMMA3N = Family(
    norms=4, qk_norm="head", pattern=_gemma3n_pattern, tied=True, attention=_gemma3n_attention,
    layers=_layers, layer_extra=_gemma3n_layer_extra, extra=_gemma3n_extra,
)  # fmt: skip
_GEMMA4 = Family(
    norms=4, qk_norm="head", pattern=_gemma4_pattern, tied=True, attention=_gemma4_attention,
    feed_forward=_gemma4_feed_forward, layers=_layers, layer_extra=_gemma4_layer_extra,
    extra=_gemma4_extra,
)  # fmt: skip

FAMILIES = {
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gemma3n": _GEMMA3N,
    "gemma3n_text": _GEMMA3N,
    "gemma4": _GEMMA4,
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
}
