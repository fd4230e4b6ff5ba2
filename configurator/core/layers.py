"""Layers and whole models: attention with its scope, the feed-forward beside it, and their sums.

A model is a ``ModelShape`` and its groups of equal layers, so hybrids, sliding windows, shared
caches and per-layer head lists need no special case: the cache is a sum over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from configurator.core.columns import ceil_div, given, maximum, minimum, plus
from configurator.core.kinds import Attention
from configurator.core.units import Count, Real

__all__ = ["FeedForward", "LayerGroup", "ModelShape", "Scope", "counted_once", "once"]

_GROWING = ("full", "compressed")


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tokens a layer keeps in its cache.

    ``kind`` is ``full``, ``window``, ``chunk``, ``compressed`` (one entry every ``size`` tokens),
    ``cross`` (``size`` source tokens, fixed), ``recurrent`` (``size`` bytes of state per
    sequence), ``shared`` (reads another layer's cache) or ``none`` (keeps nothing).
    """

    kind: str = "full"
    size: Count = 0

    def tokens(self, context: Count) -> Count:
        """Tokens held in the cache with ``context`` tokens seen. A chunk is held like a window."""
        if self.kind == "full":
            return context
        if self.kind in ("window", "chunk"):
            return minimum(context, self.size)
        if self.kind == "compressed":
            return context // self.size
        return self.size if self.kind == "cross" else 0

    @property
    def grows(self) -> bool:
        """Whether the cache grows with the context without bound."""
        return self.kind in _GROWING

    @property
    def caches(self) -> bool:
        """Whether the layer has a per-token cache of its own."""
        return self.kind in (*_GROWING, "window", "chunk", "cross")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """A block's feed-forward: dense, or a mixture of ``n_experts`` of width ``d_ff`` each.

    Args:
        d_model: width read and written.
        d_ff: hidden width (of one expert, for a mixture).
        gated: three matrices (SwiGLU, GeGLU) instead of two.
        bias: biases on every matrix.
        n_experts: routed experts; 0 means dense.
        experts_per_token: routed experts a token visits.
        shared_d_ff: total width of the experts every token visits.
        router_params: weights of the router; the usual ``d_model * n_experts`` where 0.
        other_params: what else the block's feed-forward holds (a shared-expert gate, for one).
    """

    d_model: Count
    d_ff: Count
    gated: bool = True
    bias: bool = False
    n_experts: Count = 0
    experts_per_token: Count = 0
    shared_d_ff: Count = 0
    router_params: Count = 0
    other_params: Count = 0

    @property
    def kind(self) -> str:
        """``dense`` or ``moe`` (decided by the first row of a column)."""
        experts = self.n_experts
        return "moe" if int(experts if isinstance(experts, int) else experts.max()) else "dense"

    def _matrices(self, width: Count) -> Count:
        weights = (3 if self.gated else 2) * self.d_model * width
        if self.bias:
            weights = weights + (2 if self.gated else 1) * width + self.d_model
        return weights

    def _fixed(self) -> Count:
        """Shared experts, router and the rest: what every token goes through."""
        if self.kind == "dense":
            return self.other_params
        default = self.d_model * self.n_experts
        router = self.router_params + default * (self.router_params == 0)
        shared = self._matrices(self.shared_d_ff) * (self.shared_d_ff > 0)
        return shared + router + self.other_params

    def params(self) -> Count:
        """All weights: every expert is counted."""
        if self.kind == "dense":
            return plus(self._matrices(self.d_ff), self._fixed())
        return self.n_experts * self._matrices(self.d_ff) + self._fixed()

    def active_params(self) -> Count:
        """Weights that one token goes through."""
        if self.kind == "dense":
            return self._matrices(self.d_ff) + self._fixed()
        return self.experts_per_token * self._matrices(self.d_ff) + self._fixed()

    def expert_params(self) -> Count:
        """Weights of the routed experts alone: what expert parallelism spreads over devices."""
        return 0 if self.kind == "dense" else self.n_experts * self._matrices(self.d_ff)

    def touched_params(self, tokens: Real) -> Real:
        """Expected weights read by a step of ``tokens`` tokens, routing taken as uniform.

        A mixture's expert is missed by every token with chance ``(1 - k/E)^tokens``.
        """
        if self.kind == "dense":
            return self.params()
        missed = (1.0 - self.experts_per_token / maximum(self.n_experts, 1)) ** tokens
        return self._fixed() + self.expert_params() * (1.0 - missed)


# By identity, since columns have no hash; the owner is kept too, so that it stays alive.
_known: ContextVar[dict[tuple[int, str], tuple[object, Count]] | None] = ContextVar(
    "_known", default=None
)


@contextmanager
def counted_once() -> Iterator[None]:
    """Inside, weights, a sequence's cache and the room for it are counted once for all who ask.

    Many rules ask for the same sums. Nobody may write into the columns meanwhile.
    """
    before = _known.set({})
    try:
        yield
    finally:
        _known.reset(before)


def once(owner: object, what: str, count: Callable[[], Count]) -> Count:
    """``what`` of ``owner`` is ``count()``; remembered inside :func:`counted_once`."""
    known = _known.get()
    if known is None:
        return count()
    key = id(owner), what
    if key not in known:
        known[key] = owner, count()
    return known[key][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """``count`` equal layers: their attention, what it keeps, and the feed-forward beside it.

    ``norm_params`` are the block's own norms, per layer. ``weights`` is False for a group that
    describes a second cache of layers whose weights are already counted in another group.
    """

    count: Count
    attention: Attention | None
    scope: Scope = field(default_factory=Scope)
    feed_forward: FeedForward | None = None
    norm_params: Count = 0
    other_params: Count = 0
    weights: bool = True
    label: str = ""

    def layer_params(self) -> Count:
        """Weights of one layer."""
        return once(self, "layer", self._layer_params)

    def _layer_params(self) -> Count:
        if not self.weights:
            return 0
        total = plus(self.norm_params, self.other_params)
        if self.attention is not None:
            total = plus(total, self.attention.params())
        if self.feed_forward is not None:
            total = plus(total, self.feed_forward.params())
        return total

    def active_layer_params(self) -> Count:
        """Weights of one layer that one token goes through."""
        if self.feed_forward is None or not self.weights or self.feed_forward.kind == "dense":
            return self.layer_params()
        inactive = self.feed_forward.params() - self.feed_forward.active_params()
        return self.layer_params() - inactive

    def cached_tokens(self, context: Count, page_size: Count = 1) -> Count:
        """Tokens one layer of the group holds, rounded up to whole pages."""
        if self.attention is None:
            return 0
        tokens = self.scope.tokens(context)
        return (
            tokens
            if isinstance(page_size, int) and page_size == 1
            else (ceil_div(tokens, page_size) * page_size)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A whole model: its width, vocabulary and groups of layers.

    Args:
        d_model: width of the residual stream.
        n_layers: layers as the model's config counts them.
        vocab_size: rows of the embedding matrix.
        tied: the output head is the embedding matrix, counted once.
        groups: the layers; their counts need not sum to ``n_layers`` (an encoder adds its own).
        other_params: final norms, position tables, vision towers: what no group holds.
        arch: ``decoder``, ``encoder`` or ``encoder-decoder``.
        head: an output head exists at all (an encoder may have none).
        d_embedding: width of the embedding where it is not ``d_model`` (0: it is).
    """

    d_model: Count
    n_layers: Count
    vocab_size: Count
    groups: tuple[LayerGroup, ...]
    tied: bool = False
    other_params: Count = 0
    arch: str = "decoder"
    head: bool = True
    d_embedding: Count = 0

    @property
    def embedding_params(self) -> Count:
        """Weights of one embedding matrix."""
        return self.vocab_size * given(self.d_embedding, self.d_model)

    @property
    def main(self) -> LayerGroup:
        """The group whose attention the advice is about: the first one that caches, or the first.

        Self-attention comes before cross-attention.
        """
        for wanted in (("full",), ("compressed",), ("window", "chunk"), ("cross",)):
            for group in self.groups:
                if group.attention is not None and group.scope.kind in wanted:
                    return group
        return next((g for g in self.groups if g.attention is not None), self.groups[0])

    @property
    def attention(self) -> Attention:
        """The attention of :attr:`main`; raises ``ValueError`` for a model without any."""
        attention = self.main.attention
        if attention is None:
            raise ValueError("this model has no attention layer")
        return attention

    @property
    def feed_forward(self) -> FeedForward | None:
        """The feed-forward that says what the model is: a mixture's where any group has one.

        Mixtures often begin with a few dense layers, so the first group would mislead.
        """
        found = [g.feed_forward for g in self.groups if g.feed_forward is not None]
        mixtures = [ff for ff in found if ff.kind == "moe"]
        return next(iter(mixtures), None) or self.main.feed_forward or next(iter(found), None)
