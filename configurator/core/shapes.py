"""Whole models from one geometry: what the search proposes and what a user types by hand."""

from __future__ import annotations

from typing import Any

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward, LayerGroup, ModelShape, Scope
from configurator.core.units import Count

__all__ = ["check_groups", "decoder", "encoder", "encoder_decoder", "geometry"]


def check_groups(attention: Attention) -> None:
    """Raise ``UsageError`` where the query heads are no multiple of the KV heads."""
    if isinstance(attention, GroupedQuery) and int(attention.n_heads) % int(attention.n_kv_heads):
        raise UsageError(
            f"n-heads {attention.n_heads} is not a multiple of n-kv-heads {attention.n_kv_heads}; "
            "every KV head serves the same number of query heads, so change one of them"
        )


def decoder(
    attention: Attention,
    *,
    n_layers: Count,
    feed_forward: FeedForward,
    vocab_size: Count,
    tied: bool = False,
    window: Count = 0,
    full_every: Count = 1,
) -> ModelShape:
    """A pre-norm decoder: RMSNorm, attention, RMSNorm, feed-forward; one norm at the end.

    With ``window``, every ``full_every``-th layer keeps the whole context and the others keep a
    window; ``full_every`` 0 means that every layer is windowed.
    """
    width = attention.d_model
    norms = 2 * width
    layers: dict[str, Any] = {
        "attention": attention,
        "feed_forward": feed_forward,
        "norm_params": norms,
    }
    if isinstance(window, int) and window == 0:
        groups: tuple[LayerGroup, ...] = (LayerGroup(count=n_layers, **layers),)
    else:
        full = n_layers // full_every if full_every else 0 * n_layers
        local = LayerGroup(count=n_layers - full, scope=Scope("window", window), **layers)
        groups = (LayerGroup(count=full, **layers), local) if full_every else (local,)
    return ModelShape(
        d_model=width,
        n_layers=n_layers,
        vocab_size=vocab_size,
        tied=tied,
        groups=groups,
        other_params=width,
    )


def encoder(
    attention: Attention, *, n_layers: Count, feed_forward: FeedForward, vocab_size: Count
) -> ModelShape:
    """A bidirectional encoder: no cache, no output head beyond the tied embedding."""
    width = attention.d_model
    group = LayerGroup(
        count=n_layers,
        attention=attention,
        feed_forward=feed_forward,
        scope=Scope("none"),
        norm_params=2 * width,
        label="encoder",
    )
    return ModelShape(
        d_model=width,
        n_layers=n_layers,
        vocab_size=vocab_size,
        tied=True,
        groups=(group,),
        other_params=width,
        arch="encoder",
    )


def encoder_decoder(
    attention: Attention,
    *,
    n_layers: Count,
    feed_forward: FeedForward,
    vocab_size: Count,
    source_len: Count,
    tied: bool = True,
) -> ModelShape:
    """``n_layers`` encoder layers and as many decoder layers, each with cross-attention.

    The self cache grows with the context; the cross cache holds ``source_len`` tokens, written
    once. Encoder layers keep nothing.
    """
    width = attention.d_model
    common: dict[str, Any] = {"attention": attention, "norm_params": 2 * width}
    groups = (
        LayerGroup(count=n_layers, feed_forward=feed_forward, label="decoder self", **common),
        LayerGroup(
            count=n_layers,
            attention=attention,
            scope=Scope("cross", source_len),
            norm_params=width,
            label="decoder cross",
        ),
        LayerGroup(
            count=n_layers,
            feed_forward=feed_forward,
            scope=Scope("none"),
            label="encoder",
            **common,
        ),
    )
    return ModelShape(
        d_model=width,
        n_layers=n_layers,
        vocab_size=vocab_size,
        tied=tied,
        groups=groups,
        other_params=2 * width,
        arch="encoder-decoder",
    )


def geometry(
    *,
    d_model: Count,
    n_heads: Count,
    n_kv_heads: Count = 0,
    d_head: Count = 0,
    kv_lora_rank: Count = 0,
    q_lora_rank: Count = 0,
    qk_nope_head_dim: Count = 128,
    qk_rope_head_dim: Count = 64,
    v_head_dim: Count = 0,
    bias: str = "none",
    qk_norm: bool = False,
) -> Attention:
    """Attention from the numbers a user types: a latent rank makes it MLA, else MHA, GQA, MQA.

    ``n_kv_heads`` 0 means ``n_heads``; ``d_head`` 0 means ``d_model // n_heads``.
    """
    if isinstance(kv_lora_rank, int) and kv_lora_rank == 0:
        return GroupedQuery(
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads + n_heads * (n_kv_heads == 0),
            d_head=d_head + (d_model // n_heads) * (d_head == 0),
            v_head_dim=v_head_dim,
            bias=bias,
            qk_norm=qk_norm,
        )
    return Latent(
        d_model=d_model,
        n_heads=n_heads,
        kv_lora_rank=kv_lora_rank,
        q_lora_rank=q_lora_rank,
        qk_nope_head_dim=qk_nope_head_dim,
        qk_rope_head_dim=qk_rope_head_dim,
        v_head_dim=v_head_dim + 128 * (v_head_dim == 0),
    )
