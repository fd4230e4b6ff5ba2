"""What attention costs in training: arithmetic forward and backward, and activations kept.

Numbers or columns, per token, for whole sequences of the workload's context. Everything is
counted without parallelism: splits divide it. Sources: Korthikanti et al. 2022 (arXiv 2205.05198)
for the tensors a backward pass needs; Dao 2023 (arXiv 2307.08691) and its benchmark for fused
attention, which keeps no scores and computes them again; Rajbhandari et al. 2020 (arXiv
1910.02054) for the states of mixed-precision Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from configurator.core.case import Case
from configurator.core.columns import as_float
from configurator.core.flops import attended_pairs
from configurator.core.kinds import Attention
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward, LayerGroup
from configurator.core.units import Real

__all__ = [
    "STATE_BYTES_PER_PARAM",
    "TrainingFlops",
    "attention_activation_bytes",
    "feed_forward_activation_bytes",
    "layer_activation_bytes",
    "training_flops",
]

STATE_BYTES_PER_PARAM = 16
"""Weights and gradients in 16 bits, and weights, momentum and variance in 32 (Adam)."""

_BACKWARD = 2.0  # a product has two gradients, each a product of the same size
_RECOMPUTED = 0.5  # fused attention repeats one of the forward pass's two products
_LSE_BYTES = 4  # one log-sum-exp in 32 bits for each head and query


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlops:
    """FLOPs per token, forward and backward, of the whole model.

    ``projections`` and ``scores`` are attention's; ``rest`` is feed-forward and output head.
    ``recomputed`` is what fused kernels add in the backward pass, which model FLOPs leave out.
    """

    projections: Real
    scores: Real
    rest: Real
    recomputed: Real

    @property
    def attention(self) -> Real:
        """Projections and scores."""
        return self.projections + self.scores

    @property
    def total(self) -> Real:
        """Model FLOPs: what a count of six per weight approximates."""
        return self.projections + self.scores + self.rest


def training_flops(case: Case) -> TrainingFlops:
    """``3 * (2 * weights + score FLOPs * pairs / tokens)`` per layer and token, summed.

    Norms, softmax and rotary embeddings are ignored, and so is the optimizer's step. A causal
    layer attends to half the square. An encoder-decoder is counted for a source as long as its
    target, each token once.
    """
    shape, tokens = case.shape, as_float(case.workload.context)
    projections: Real = 0.0
    scores: Real = 0.0
    rest: Real = 2.0 * as_float(shape.embedding_params) * shape.head
    for g in shape.groups:
        if g.attention is not None:
            if g.weights:
                projections = projections + g.count * 2.0 * as_float(g.attention.matmul_params())
            causal = shape.arch != "encoder" and g.label != "encoder" and g.scope.kind != "cross"
            kind = g.scope.kind if causal else "none"
            pairs = attended_pairs(tokens, kind, g.scope.size, causal)
            scores = scores + g.count * g.attention.score_flops("prefill") * pairs / tokens
        if g.feed_forward is not None and g.weights:
            rest = rest + g.count * 2.0 * as_float(g.feed_forward.active_params())
    step = 1.0 + _BACKWARD
    return TrainingFlops(
        projections=step * projections,
        scores=step * scores,
        rest=step * rest,
        recomputed=_RECOMPUTED * scores,
    )


def attention_activation_bytes(
    attention: Attention,
    context: Real,
    *,
    value_bytes: int = 2,
    fused: bool = True,
    dropout: bool = False,
) -> Real:
    """Bytes per token that one layer's attention keeps for its backward pass.

    The layer's input, queries, keys, values and the output before its projection; MLA also keeps
    its latents before and after their norms. ``fused`` kernels keep a log-sum-exp for each head,
    others ``context`` scores of each head (``5 * n_heads * context`` bytes with dropout in 16
    bits, Korthikanti et al. 2022). Rotary copies are ignored: they are made again.

    >>> from configurator.core.kinds.gqa import GroupedQuery
    >>> mha = GroupedQuery(d_model=1024, n_heads=16, n_kv_heads=16, d_head=64)
    >>> attention_activation_bytes(mha, 64, fused=False, dropout=True) - 5 * 16 * 64 == 11 * 1024
    True
    """
    a: Any = attention
    heads, width = a.n_heads, a.d_head
    values = heads * a.v_width
    if isinstance(attention, Latent):
        latents = 2 * (a.q_lora_rank + a.kv_lora_rank) + a.qk_rope_head_dim
        kept = a.d_model + latents + 2 * heads * width + 2 * values
    else:
        kept = a.d_model + (heads + a.n_kv_heads) * width + a.n_kv_heads * a.v_width + values
        if a.qk_norm:  # queries and keys before their norm as well
            kept = kept + (heads + a.n_kv_heads) * width
    total: Real = as_float(kept) * value_bytes
    if fused:
        total = total + heads * _LSE_BYTES
    else:
        total = total + heads * context * (2 * value_bytes + 1 if dropout else value_bytes)
    return total + a.d_model if dropout else total


def feed_forward_activation_bytes(
    ff: FeedForward, *, value_bytes: int = 2, dropout: bool = False
) -> Real:
    """Bytes per token that one layer's feed-forward keeps: its input and the hidden values.

    A gated one keeps gate, up and their product, an ungated one its hidden layer before and after
    the nonlinearity. A mixture keeps a copy of the input for each expert visited, and the
    router's scores in 32 bits.
    """
    hidden = 3 if ff.gated else 2
    if ff.kind == "dense":
        kept, router = ff.d_model + hidden * ff.d_ff, 0
    else:
        visited = ff.experts_per_token * (ff.d_model + hidden * ff.d_ff)
        kept = ff.d_model + visited + hidden * ff.shared_d_ff
        router = 4 * ff.n_experts
    total = as_float(kept) * value_bytes + router
    return total + ff.d_model if dropout else total


def layer_activation_bytes(
    group: LayerGroup, context: Real, *, value_bytes: int = 2, fused: bool = True,
    dropout: bool = False,
) -> dict[str, Real]:  # fmt: skip
    """Bytes per token of one layer by part: ``attention``, ``feed_forward``, ``norms``.

    Each part's norm keeps the residual that it reads.
    """
    found: dict[str, Real] = {"attention": 0.0, "feed_forward": 0.0, "norms": 0.0}
    if group.attention is not None:
        found["attention"] = attention_activation_bytes(
            group.attention, context, value_bytes=value_bytes, fused=fused, dropout=dropout
        )
        found["norms"] = found["norms"] + as_float(group.attention.d_model) * value_bytes
    if group.feed_forward is not None:
        found["feed_forward"] = feed_forward_activation_bytes(
            group.feed_forward, value_bytes=value_bytes, dropout=dropout
        )
        found["norms"] = found["norms"] + as_float(group.feed_forward.d_model) * value_bytes
    return found
