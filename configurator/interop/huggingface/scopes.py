"""What each layer keeps: layer lists, patterns, windows, and switches that overrule them."""

from __future__ import annotations

from configurator.core.errors import UsageError, show
from configurator.core.layers import Scope
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family

__all__ = [
    "CHUNK",
    "CONV",
    "FEED_FORWARD_ONLY",
    "FULL",
    "HYBRID",
    "INDEXED",
    "LINEAR",
    "WINDOW",
    "every",
    "kinds_of",
    "scope_of",
    "window_size",
]

FULL, WINDOW, CHUNK, INDEXED = (
    "full_attention", "sliding_attention", "chunked_attention", "indexed_attention",
)  # fmt: skip
LINEAR, CONV, HYBRID = "linear_attention", "conv", "hybrid"
_HALVED = ("gemma3", "gemma4")  # types whose window is halved where tokens see both ways
FEED_FORWARD_ONLY = ("moe", "mlp", "none")
_NAMES = {
    FULL: FULL, WINDOW: WINDOW, CHUNK: CHUNK, INDEXED: INDEXED, LINEAR: LINEAR, CONV: CONV,
    HYBRID: HYBRID, "hybrid_sliding": "hybrid_sliding", "moe": "moe", "mlp": "mlp",
    "attention": FULL, "global": FULL, "global_attention": FULL, "full": FULL,
    "local": WINDOW, "local_attention": WINDOW, "sliding": WINDOW, "sliding_window": WINDOW,
    "mamba": LINEAR, "mamba2": LINEAR, "recurrent": LINEAR, "linear": LINEAR, "kda": LINEAR,
    "deepseek_sparse_attention": INDEXED, "minimax_m3_sparse": "minimax_m3_sparse",
    "compressed_sparse_attention": "compressed_sparse_attention",
    "heavily_compressed_attention": "heavily_compressed_attention",
}  # fmt: skip


def every(period: int, n: int, *, full_at: int | None = None) -> list[str]:
    """Windowed layers with a full one at index ``full_at`` of each period (the last by default)."""
    if period <= 0:
        return [FULL] * n
    at = period - 1 if full_at is None else full_at
    return [FULL if i % period == at else WINDOW for i in range(n)]


def kinds_of(config: Config, family: Family, n: int) -> list[str]:
    """The kind of each of ``n`` layers: the file's own list, the family's pattern, or all full."""
    listed = config.words("layer_types")
    if listed is None:
        return family.pattern(config, n) if family.pattern is not None else _plain(config, n)
    key = config.key("layer_types")
    spare = config.maybe("num_nextn_predict_layers", least=0) or 0
    if len(listed) not in (n, n + spare):  # some files list the extra prediction layers too
        raise UsageError(
            f"{key} lists {len(listed)} layers but {config.key('num_hidden_layers')} is {n}; they "
            f"must agree"
        )
    for i, name in enumerate(listed):
        if name not in _NAMES:
            raise UsageError(f"{key}[{i}] is {show(name)}; known kinds: {', '.join(_NAMES)}")
    return [_NAMES[name] for name in listed[:n]]


def _plain(config: Config, n: int) -> list[str]:
    """Without a list or a pattern: windows if a window is stated, chunks if a chunk is."""
    if window_size(config):
        return [WINDOW] * n
    return [CHUNK if config.maybe("attention_chunk_size") else FULL] * n


def window_size(config: Config) -> int:
    """Tokens of the sliding window, 0 where there is none or it is switched off."""
    if not config.flag("use_sliding_window", True):
        _say_no_switch(config)
        return 0
    size = config.maybe("sliding_window", least=0) or 0
    if size and config.model_type.startswith(_HALVED) and _both_ways(config):
        return size // 2 + 1
    return size


def _both_ways(config: Config) -> bool:
    """Whether tokens see the ones after them too: half of a window then lies behind (Gemma)."""
    return config.values.get("use_bidirectional_attention") in (True, "all")


def _say_no_switch(config: Config) -> None:
    """A warning where the family's class has a window and no switch for it."""
    if not config.defaults or "use_sliding_window" in config.defaults:
        return
    stated = config.maybe("sliding_window", least=0)
    if stated:
        config.notes.warn(
            f"{config.named('use_sliding_window')} is false, so no window is counted; the class of "
            f"{config.model_type} in transformers 5.24 has no such switch and keeps {stated} tokens"
        )


def scope_of(config: Config, kind: str, window: int | None = None) -> Scope:
    """The scope of an attention layer of ``kind``; a window without a size keeps everything."""
    if kind in (WINDOW, "hybrid_sliding"):
        size = window_size(config) if window is None else window
        return Scope("window", size) if size else Scope("full")
    if kind == CHUNK:
        chunk = config.maybe("attention_chunk_size")
        return Scope("chunk", chunk) if chunk else Scope("full")
    return Scope("full")
