"""The counts behind an audit: groups of layers as rows, their sums, lists where they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from configurator.core.audit_report import GroupRow
from configurator.core.case import Case, Workload
from configurator.core.cost import (
    cache_bytes_per_token,
    cache_bytes_per_token_past_window,
    fixed_bytes_per_sequence,
)
from configurator.core.dtypes import LATENT_FP8
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import LayerGroup, ModelShape, Scope
from configurator.interop.huggingface.family import Layer
from configurator.interop.huggingface.reading import Reading

__all__ = [
    "caching_layers",
    "decode_flops_per_cached_token",
    "fixed_state",
    "group_rows",
    "index_keys",
    "kv_bytes",
    "same_or_list",
    "with_mode",
    "with_source",
]


def with_mode(shape: ModelShape, mode: str) -> ModelShape:
    """The same model with its latents rebuilt into keys and values in the cache, if asked."""
    if mode != "rebuilt":
        return shape
    groups = tuple(
        replace(g, attention=replace(g.attention, rebuilt=True))
        if isinstance(g.attention, Latent)
        else g
        for g in shape.groups
    )
    return replace(shape, groups=groups)


def with_source(shape: ModelShape, source: int) -> ModelShape:
    """The same model with ``source`` positions in cross-attention caches of open length."""
    groups = tuple(
        replace(g, scope=Scope("cross", source)) if g.scope == Scope("cross", 0) else g
        for g in shape.groups
    )
    return replace(shape, groups=groups)


def caching_layers(reading: Reading, shape: ModelShape) -> list[Attention]:
    """The attention of every layer that keeps its own tokens, in order; a layer counts once."""
    rebuilt = {
        g.attention: g.attention
        for g in shape.groups
        if isinstance(g.attention, Latent) and g.attention.rebuilt
    }
    found = []
    for layer in reading.layers:
        if layer.attention is None or not _keeps_tokens(layer):
            continue
        attention = layer.attention
        if rebuilt and isinstance(attention, Latent):
            attention = replace(attention, rebuilt=True)
        found.append(attention)
    return found


def _keeps_tokens(layer: Layer) -> bool:
    return layer.scope.caches and layer.scope.kind != "cross" and not layer.beside


def same_or_list(values: Sequence[Any]) -> Any:
    """One value where all are equal, the list where they differ, ``None`` where there are none."""
    if not values:
        return None
    return values[0] if all(v == values[0] for v in values) else list(values)


def kv_bytes(case: Case, *, ranks: int = 1, full: bool = False) -> dict[str, int]:
    """Cache bytes of the batch by what is attended: own tokens, and the source where there is one.

    With ``full`` windowed layers are charged the whole context, as some servers reserve it.
    Recurrent state is not a cache of tokens and is left out.
    """
    work: Workload = case.workload
    found = {"self_attention": 0, "cross_attention": 0}
    for g in case.shape.groups:
        if not g.scope.caches or g.attention is None:
            continue
        held = replace(g, scope=Scope("full")) if full and g.scope.kind == "window" else g
        tokens = held.cached_tokens(work.context, work.page_size)
        size = g.count * tokens * g.attention.cache_bytes(work.kv, ranks)
        name = "cross_attention" if g.scope.kind == "cross" else "self_attention"
        found[name] += int(work.batch * size)
    if not any(g.scope.kind == "cross" for g in case.shape.groups):
        del found["cross_attention"]
    return found


def group_rows(case: Case) -> tuple[GroupRow, ...]:
    """The groups as a table: a reader sees where the bytes are."""
    return tuple(_row(case, group) for group in case.shape.groups)


def _row(case: Case, g: LayerGroup) -> GroupRow:
    work, attention = case.workload, g.attention
    per_token = attention.cache_bytes(work.kv, 1) if attention and g.scope.caches else 0
    tokens = g.cached_tokens(work.context, work.page_size) if g.scope.caches else 0
    recurrent = g.scope.kind == "recurrent"
    return GroupRow(
        layers=g.count,
        kind=g.label or _kind(g),
        projection=attention.projection if attention else None,
        n_heads=attention.n_heads if attention else None,
        n_kv_heads=attention.kv_heads if attention else None,
        d_head=_attribute(attention, "d_head"),
        v_head_dim=_attribute(attention, "v_width"),
        scope=g.scope.kind,
        window=0 if recurrent else int(g.scope.size),
        tokens=int(tokens),
        kv_bytes_per_token=int(g.count * per_token),
        kv_bytes_at_context=int(work.batch * g.count * tokens * per_token),
        state_bytes=int(work.batch * g.count * g.scope.size) if recurrent else 0,
        params=int(g.count * g.layer_params()),
    )


def _attribute(attention: Attention | None, name: str) -> int | None:
    value = getattr(attention, name, None)
    return None if value is None else int(value)


def _kind(g: LayerGroup) -> str:
    if g.attention is None:
        return "no attention"
    names: dict[str, Callable[[], str]] = {
        "full": lambda: "full attention",
        "window": lambda: f"window of {g.scope.size:,}",
        "chunk": lambda: f"chunk of {g.scope.size:,}",
        "compressed": lambda: f"one entry in {g.scope.size} tokens",
        "cross": lambda: "cross-attention",
        "shared": lambda: "reads another layer's cache",
        "none": lambda: "keeps no cache",
    }
    return names[g.scope.kind]()


def fixed_state(reading: Reading) -> dict[str, Any] | None:
    """State of recurrent layers for one sequence; lists where layers of several kinds keep one."""
    states = reading.states
    if not states:
        return None
    kinds, counts = [state for state, _ in states], [count for _, count in states]
    return {
        "linear_layers": sum(counts),
        "recurrent_values_per_layer": same_or_list([s.values for s in kinds]),
        "conv_channels_per_layer": same_or_list([s.channels for s in kinds]),
        "conv_taps": same_or_list([s.taps for s in kinds]),
        "kinds": list(dict.fromkeys(s.kind for s in kinds)),
        "bytes_in_transformers_5_24": sum(s.bytes * n for s, n in states),
    }


def fixed_bytes(case: Case) -> dict[str, int]:
    """Bytes of one sequence that do not grow: the source's cache and recurrent state."""
    return {name: int(value) for name, value in fixed_bytes_per_sequence(case).items() if value}


def per_token(case: Case) -> tuple[int, int]:
    """What one more token adds while every layer has room, and once windows are full."""
    return int(cache_bytes_per_token(case)), int(cache_bytes_per_token_past_window(case))


def decode_flops_per_cached_token(attention: Attention | None) -> Any:
    """FLOPs of one query token against one cached one, in one layer; by mode for a latent."""
    if attention is None:
        return None
    if isinstance(attention, Latent):
        latent, full = replace(attention, rebuilt=False), replace(attention, rebuilt=True)
        return {
            "absorbed": int(latent.score_flops("decode")),
            "rebuilt": int(full.score_flops("decode")),
            "re_expanded_each_step_extra": int(latent.expansion_flops()),
        }
    return int(attention.score_flops("decode"))


def qkv_width(attentions: Sequence[Attention]) -> Any:
    """Outputs of a fused query, key and value projection, where layers have one."""
    widths = [int(a.qkv_width) for a in attentions if isinstance(a, GroupedQuery)]
    return same_or_list(widths) if len(widths) == len(attentions) else None


def index_keys(case: Case, attentions: Sequence[Attention]) -> list[str]:
    """A word on the keys of a sparse-attention indexer, which are cached beside the latents."""
    widths = [int(a.index_head_dim) for a in attentions if isinstance(a, Latent)]
    if not any(widths) or case.workload.kv.k == LATENT_FP8:
        return []  # that layout counts their scales too, and is what servers keep
    size = sum(int(case.workload.kv.k.bytes_for(w)) for w in widths if w)
    return [
        f"{size:,} of the bytes a token adds are keys of the sparse-attention indexer "
        f"({max(widths)} values a layer), counted in {case.workload.kv.k.name}; servers often keep "
        f"them in fp8"
    ]
