"""A catalog model as an audit reads it: its groups of layers one by one, and what is not known."""

from __future__ import annotations

from dataclasses import replace

from configurator.catalog.model_card import LayerKind
from configurator.catalog.published import PublishedModel
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.shared_kv import SharedKeyValue
from configurator.core.layers import LayerGroup, ModelShape, Scope
from configurator.interop.huggingface.assemble import gather
from configurator.interop.huggingface.family import Layer
from configurator.interop.huggingface.reading import Reading

__all__ = ["reading_of"]


def reading_of(model: PublishedModel) -> Reading:
    """The reading of a published model; its parameters stay unknown where the file lacks a part.

    Raises ``UsageError`` for an attention that this program has no formula for.
    """
    unknown: tuple[str, ...] = ()
    if model.countable:
        shape = model.shape()
        layers = tuple(_layer(g) for g in shape.groups for _ in range(g.count))
    else:
        layers = tuple(_cache_only(model))
        groups, _ = gather(layers)
        shape = ModelShape(
            d_model=model.d_model,
            n_layers=model.n_layers,
            vocab_size=model.vocab_size,
            groups=groups,
            tied=bool(model.tied),
            arch="encoder" if model.arch == "vision" else model.arch,
        )
        unknown = ("every part of its layers",)
    notes = [f"from the catalog: {model.title} ({model.org}, {model.year})"]
    if model.note:
        notes.append(model.note)
    return Reading(
        shape=shape,
        layers=layers,
        model_type=model.name,
        text_type=model.name,
        known=True,
        unknown=unknown,
        towers=(),
        heads_key="n_heads",
        kv_heads_key="n_kv_heads",
        max_positions=model.max_position,
        dtype="bf16",
        warnings=tuple(notes),
        source_fixed=model.source_len > 0,
        source_default=model.source_len,
    )


def _layer(group: LayerGroup) -> Layer:
    return Layer(
        attention=group.attention,
        scope=group.scope,
        feed_forward=group.feed_forward,
        norm_params=group.norm_params,
        other_params=group.other_params,
        weights=group.weights,
        label=group.label,
    )


def _cache_only(model: PublishedModel) -> list[Layer]:
    """Layers that keep a cache, by scope, and the rest; nothing is counted as weights."""
    kinds = model.layers or (
        LayerKind(count=model.n_full_layers),
        LayerKind(count=model.n_local_layers, scope=model.local_scope, size=model.sliding_window),
        LayerKind(count=model.n_layers - model.n_full_layers - model.n_local_layers, scope="none"),
    )
    if model.arch in ("encoder", "vision"):
        layer = Layer(attention=model.attention(), scope=Scope("none"), weights=False)
        return [layer] * model.n_layers
    twice = sum(kind.count for kind in kinds) > model.n_layers
    found: list[Layer] = []
    for kind in kinds:
        layer = Layer(
            attention=_attention(model, kind) if kind.scope != "none" and kind.count else None,
            scope=Scope(kind.scope, kind.size),
            weights=False,
            beside=twice and kind.scope == "compressed",  # a second cache of a windowed layer
        )
        found.extend([layer] * kind.count)
    return found


def _attention(model: PublishedModel, kind: LayerKind) -> Attention:
    """One layer's attention: the model's, with the heads or the entries that the layer states."""
    if kind.elements:
        return SharedKeyValue(
            d_model=model.d_model,
            n_heads=model.n_heads,
            d_head=model.d_head,
            q_lora_rank=0,  # the projections are not known, and not counted
            o_groups=1,
            o_lora_rank=0,
            index_head_dim=kind.elements - model.d_head,
        )
    if model.projection == "other" and model.n_kv_heads and not model.kv_lora_rank:
        usual: Attention = GroupedQuery(
            d_model=model.d_model,
            n_heads=model.n_heads,
            n_kv_heads=model.n_kv_heads,
            d_head=model.d_head,
            v_head_dim=model.v_head_dim,
        )
    else:
        usual = model.attention()
    if not isinstance(usual, GroupedQuery):
        return usual
    heads, width = kind.n_kv_heads or usual.n_kv_heads, kind.d_head or usual.d_head
    return replace(usual, n_kv_heads=heads, d_head=width)
