"""A published model's weights, group by group: what :meth:`PublishedModel.shape` returns.

Counted: embeddings (once if tied), learned positions, attention with its biases and QK-norms,
feed-forward or experts with their router, every norm, and what ``extra_params`` names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward, LayerGroup, ModelShape, Scope

if TYPE_CHECKING:
    from configurator.catalog.model_card import LayerKind, PublishedModel

__all__ = ["shape_of"]

_NORM = {"rmsnorm": 1, "layernorm": 2, "layernorm-no-bias": 1, "none": 0}


def shape_of(model: PublishedModel) -> ModelShape:
    """The groups of a model and everything no group holds."""
    width = _NORM[model.norm] * model.d_model
    other = model.final_norms * width + model.position_rows * model.d_model + model.extra_params
    groups = _two_stacks(model) if model.arch == "encoder-decoder" else _one_stack(model)
    return ModelShape(
        d_model=model.d_model,
        n_layers=model.n_layers,
        vocab_size=model.vocab_size,
        tied=bool(model.tied),
        head=model.vocab_size > 0,
        d_embedding=model.d_embedding,
        groups=groups,
        other_params=other,
        arch="encoder" if model.arch == "vision" else model.arch,
    )


def _one_stack(model: PublishedModel) -> tuple[LayerGroup, ...]:
    return tuple(
        LayerGroup(
            count=count,
            attention=_attention(model, kind),
            scope=Scope(scope, size),
            feed_forward=_feed_forward(model, dense),
            **_beside(model),
        )
        for count, scope, size, dense, kind in _kinds(model)
        if count
    )


def _kinds(model: PublishedModel) -> list[tuple[int, str, int, bool, LayerKind | None]]:
    """Layers by what they keep and which feed-forward they have: (count, scope, size, dense)."""
    dense_default = not model.n_experts
    if model.layers:
        return [
            (k.count, k.scope, k.size, (k.feed_forward or "moe") == "dense" or dense_default, k)
            for k in model.layers
        ]
    if model.arch in ("encoder", "vision"):
        return [(model.n_layers, "none", 0, dense_default, None)]
    full, local = model.n_full_layers, model.n_local_layers
    none = model.n_layers - full - local
    found = [
        (full - model.dense_layers, "full", 0, dense_default, None),
        (local, model.local_scope, model.sliding_window, dense_default, None),
        (none, "shared", 0, dense_default, None),
    ]
    if model.dense_layers:  # they keep the whole context, as all others do; named last because
        found.append((model.dense_layers, "full", 0, True, None))  # the first group stands for all
    return [(count, *rest) for count, *rest in found]  # type: ignore[misc]


def _attention(model: PublishedModel, kind: LayerKind | None) -> Attention:
    usual = model.attention()
    if kind is None or not isinstance(usual, GroupedQuery):
        return usual
    heads, width = kind.n_kv_heads or usual.n_kv_heads, kind.d_head or usual.d_head
    return replace(usual, n_kv_heads=heads, d_head=width)


def _beside(model: PublishedModel) -> dict[str, Any]:
    """Norms of a layer, and what else it holds apart from attention and feed-forward."""
    norms = model.norms_per_layer * _NORM[model.norm] * model.d_model
    return {"norm_params": norms, "other_params": model.extra_layer_params}


def _feed_forward(model: PublishedModel, dense: bool) -> FeedForward:
    common: dict[str, Any] = {
        "d_model": model.d_model,
        "gated": model.mlp == "gated",
        "bias": model.mlp_bias,
    }
    if dense:
        return FeedForward(d_ff=model.d_ff, **common)
    return FeedForward(
        d_ff=model.expert_d_ff,
        n_experts=model.n_experts,
        experts_per_token=model.experts_per_token,
        shared_d_ff=model.shared_d_ff,
        router_params=model.d_model * model.n_experts + model.router_extra,
        other_params=model.moe_extra,
        **common,
    )


def _two_stacks(model: PublishedModel) -> tuple[LayerGroup, ...]:
    """Decoder self-attention, decoder cross-attention, encoder. One norm more with the cross."""
    attention = model.attention()
    norm = _NORM[model.norm] * model.d_model
    beside = _beside(model)
    cross = {**beside, "norm_params": norm}
    feed_forward = _feed_forward(model, True)
    return (
        LayerGroup(
            count=model.n_layers,
            attention=attention,
            feed_forward=feed_forward,
            label="decoder self",
            **beside,
        ),
        LayerGroup(
            count=model.n_layers,
            attention=attention,
            scope=Scope("cross", model.source_len),
            label="decoder cross",
            **cross,
        ),
        LayerGroup(
            count=model.encoder_layers,
            attention=attention,
            scope=Scope("none"),
            feed_forward=feed_forward,
            label="encoder",
            **beside,
        ),
    )
