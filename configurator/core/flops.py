"""FLOPs of a decode step and of a prefill, in float64: int64 columns overflow silently.

A multiply-add is 2 FLOPs; softmax, norms and rotary embeddings are ignored.
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import as_float, minimum
from configurator.core.layers import ModelShape
from configurator.core.units import Count, Real

__all__ = ["attended_pairs", "decode_flops", "prefill_flops"]


def _matmul_params_active(shape: ModelShape) -> Real:
    """Weights in matrix products for one token, output head left out."""
    total: Real = 0.0
    for g in shape.groups:
        if not g.weights:
            continue
        per_layer: Real = 0.0
        if g.attention is not None:
            per_layer = per_layer + as_float(g.attention.matmul_params())
        if g.feed_forward is not None:
            per_layer = per_layer + as_float(g.feed_forward.active_params())
        if g.scope.kind == "recurrent":  # all but a few thousand of a state layer's weights
            per_layer = per_layer + as_float(g.other_params)
        total = total + g.count * per_layer
    return total


def decode_flops(case: Case) -> Real:
    """One step of the whole batch: 2 per weight and token, and every query against its cache.

    Softmax, norms and rotary embeddings are ignored; absorbed arithmetic for MLA.
    """
    work, shape = case.workload, case.shape
    per_token = 2.0 * (
        _matmul_params_active(_decoding(shape)) + as_float(shape.embedding_params) * shape.head
    )
    for g in shape.groups:
        if g.attention is not None and g.scope.caches:
            keys = as_float(g.scope.tokens(work.context))
            per_token = per_token + g.count * g.attention.score_flops("decode") * keys
    return work.batch * per_token


def _decoding(shape: ModelShape) -> ModelShape:
    """The layers that run for each generated token: all but an encoder's."""
    if shape.arch != "encoder-decoder":
        return shape
    groups = tuple(g for g in shape.groups if g.label != "encoder")
    return ModelShape(
        d_model=shape.d_model,
        n_layers=shape.n_layers,
        vocab_size=shape.vocab_size,
        groups=groups,
        tied=shape.tied,
        other_params=shape.other_params,
        arch=shape.arch,
        head=shape.head,
        d_embedding=shape.d_embedding,
    )


def attended_pairs(tokens: Real, scope_kind: str, size: Count, causal: bool = True) -> Real:
    """Query-key pairs that a prefill of ``tokens`` computes: half the square where causal.

    A window of ``size`` keeps ``size`` keys per query, its first tokens fewer.
    """
    n = as_float(tokens) if not isinstance(tokens, float) else tokens
    if not causal or scope_kind == "none":
        return n * n
    triangle = n * (n + 1.0) / 2.0
    if scope_kind not in ("window", "chunk"):
        return triangle
    w = minimum(as_float(size), n)
    return w * (w + 1.0) / 2.0 + (n - w) * w


def prefill_flops(case: Case) -> Real:
    """The whole batch's prompt of ``context`` tokens, causal; the output head runs once each.

    For an encoder-decoder the source passes the encoder and is projected for cross-attention.
    """
    work, shape = case.workload, case.shape
    tokens = as_float(work.context)
    total: Real = 2.0 * as_float(shape.embedding_params) * shape.head
    for g in shape.groups:
        source = as_float(work.source_len)
        encodes = g.label == "encoder" and shape.arch == "encoder-decoder"
        rows = source if encodes or g.scope.kind == "cross" else tokens
        weights: Real = 0.0
        if g.weights and g.attention is not None:
            weights = weights + as_float(g.attention.matmul_params())
        if g.weights and g.feed_forward is not None:
            weights = weights + as_float(g.feed_forward.active_params())
        pairs: Real = 0.0
        if g.attention is not None:
            causal = shape.arch != "encoder" and not encodes
            pairs = (
                tokens * source
                if g.scope.kind == "cross"
                else attended_pairs(rows, g.scope.kind if causal else "none", g.scope.size, causal)
            )
            pairs = pairs * g.attention.score_flops("prefill")
        total = total + g.count * (2.0 * weights * rows + pairs)
    return work.batch * total
