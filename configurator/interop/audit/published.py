"""A catalog model as an audit reads it: its groups of layers one by one, and what is not known."""

from __future__ import annotations

from configurator.catalog.published import PublishedModel
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
    attention = model.attention()
    kinds = [(k.count, k.scope, k.size) for k in model.layers] or [
        (model.n_full_layers, "full", 0),
        (model.n_local_layers, model.local_scope, model.sliding_window),
        (model.n_layers - model.n_full_layers - model.n_local_layers, "none", 0),
    ]
    found: list[Layer] = []
    for count, scope, size in kinds:
        keeps = scope != "none"
        layer = Layer(attention=attention if keeps else None, scope=Scope(scope, size))
        found.extend([layer] * count)
    return found
