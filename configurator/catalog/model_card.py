"""One published model as its file describes it: geometry, figures, and how its weights add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import ModelShape

__all__ = ["LayerKind", "PublishedModel", "best_total", "from_table", "is_mixture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """``count`` layers that differ from the model's usual ones, for caches of several kinds.

    Args:
        count: how many.
        scope: ``full``, ``window``, ``chunk``, ``compressed`` or ``none``, as in ``Scope``.
        size: window, chunk, or tokens for each entry of a compressed cache.
        feed_forward: ``dense`` or ``moe`` where the model has both; empty: the usual.
        n_kv_heads, d_head: where they differ; 0: the model's.
        elements: cached elements per entry where no kind of attention here gives them.
    """

    count: int
    scope: str = "full"
    size: int = 0
    feed_forward: str = ""
    n_kv_heads: int = 0
    d_head: int = 0
    elements: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """A published model. 0, an empty text or None mean that the figure is not known.

    Args:
        name: the catalog's name, such as ``llama-3.1-8b``.
        title, org, year, family, arch: what it is; arch is ``decoder``, ``encoder``,
            ``encoder-decoder`` or ``vision``.
        n_layers: decoder layers for an encoder-decoder, every block for a hybrid.
        encoder_layers: encoder layers of an encoder-decoder.
        source_len: source tokens that its cross-attention always keeps; 0: as many as are given.
        d_ff: dense width, or an expert's where no layer is dense.
        d_embedding: width of the embedding where it is not ``d_model``.
        projection: ``MHA``, ``GQA``, ``MQA``, ``MLA`` or ``other``.
        n_full_layers: layers whose cache grows with the whole context.
        n_local_layers: layers whose cache a window or chunk of ``sliding_window`` bounds.
        local_scope: ``window`` or ``chunk``.
        beside: what mixes tokens in the same layers beside the attention, such as Mamba2.
        layers: kinds of layers, where the three above do not tell it all.
        attention_bias: ``no``, ``qkv``, ``all``, ``o`` or ``q,v,o``.
        tied: the output head is the embedding.
        published_params: total as published; ``params_basis`` says how well: ``exact``,
            ``card`` (rounded), ``name`` (rounded for marketing) or ``computed`` (by count only).
        active_params: weights a token goes through, as published.
        counted_params: our own count, 0 where the layers cannot be counted from this file.
        mlp, mlp_bias, norm, norms_per_layer, final_norms, qk_norm, position_rows,
            extra_layer_params, extra_params: what the count needs beyond the geometry.
        n_experts, experts_per_token, expert_d_ff, shared_d_ff, dense_layers, router_extra,
            moe_extra: the same for a mixture of experts.
        extra_params_are: what the extra parameters are.
        kv_elements_per_token: elements one more token adds to the cache; None where layers
            differ in a way the file does not give.
        sources: where the figures were read.
        note: what a reader should know.
    """

    name: str
    title: str
    org: str
    year: int
    family: str
    arch: str
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int = 0
    d_head: int
    projection: str
    sources: tuple[str, ...]
    d_ff: int = 0
    vocab_size: int = 0
    d_embedding: int = 0
    encoder_layers: int = 0
    source_len: int = 0
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    sliding_window: int = 0
    n_full_layers: int = 0
    n_local_layers: int = 0
    local_scope: str = "window"
    beside: str = ""
    layers: tuple[LayerKind, ...] = ()
    attention_bias: str = "no"
    position: str = ""
    rope_theta: float = 0.0
    max_position: int = 0
    tied: bool | None = None
    published_params: int = 0
    params_basis: str = ""
    active_params: int = 0
    counted_params: int = 0
    mlp: str = "gated"
    mlp_bias: bool = False
    norm: str = "rmsnorm"
    norms_per_layer: int = 2
    final_norms: int = 1
    qk_norm: str = "none"
    position_rows: int = 0
    extra_layer_params: int = 0
    extra_params: int = 0
    extra_params_are: str = ""
    n_experts: int = 0
    experts_per_token: int = 0
    expert_d_ff: int = 0
    shared_d_ff: int = 0
    dense_layers: int = 0
    router_extra: int = 0
    moe_extra: int = 0
    kv_elements_per_token: int | None = None
    note: str = ""

    @property
    def total_params(self) -> int:
        """The best total known: exact or counted before rounded; 0 where there is none."""
        return best_total(self.params_basis, self.published_params, self.counted_params)

    @property
    def countable(self) -> bool:
        """Whether :meth:`shape` can be built: the file holds all that the weights add up from."""
        return self.counted_params > 0

    @property
    def is_moe(self) -> bool:
        """A mixture of experts: it names experts, or fewer active parameters than total ones."""
        return is_mixture(self.n_experts, self.active_params, self.published_params)

    @property
    def plain(self) -> bool:
        """Every layer keeps the whole context by attention, and nothing else mixes tokens."""
        full = all(kind.scope == "full" for kind in self.layers)
        return (
            full and not self.beside and (bool(self.layers) or self.n_full_layers >= self.n_layers)
        )

    def attention(self) -> Attention:
        """The attention of the usual layer.

        Raises:
            UsageError: a kind this program has no formula for, or heads that vary by layer.
        """
        if self.projection == "MLA":
            return Latent(
                d_model=self.d_model,
                n_heads=self.n_heads,
                kv_lora_rank=self.kv_lora_rank,
                q_lora_rank=self.q_lora_rank,
                qk_nope_head_dim=self.qk_nope_head_dim,
                qk_rope_head_dim=self.qk_rope_head_dim,
                v_head_dim=self.v_head_dim,
            )
        if self.projection == "other" or not self.n_kv_heads:
            raise UsageError(
                f"{self.name}: its attention is no MHA, GQA, MQA or MLA with one head count; "
                "see its note"
            )
        return GroupedQuery(
            d_model=self.d_model,
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            d_head=self.d_head,
            v_head_dim=self.v_head_dim if self.v_head_dim != self.d_head else 0,
            bias={"no": "none", "q,v,o": "all"}.get(self.attention_bias, self.attention_bias),
            qk_norm=self.qk_norm == "head",
            other_params=self._beside_projections(),
        )

    def _beside_projections(self) -> int:
        """Norm scales over all heads' features; less the biases that Whisper's keys lack."""
        wide = (self.n_heads + self.n_kv_heads) * self.d_head * (self.qk_norm == "wide")
        return wide - self.n_kv_heads * self.d_head * (self.attention_bias == "q,v,o")

    def cache_elements_per_token(self) -> int:
        """Elements one more token adds past every window: a sum over the layers that grow.

        Raises:
            UsageError: as :meth:`attention`, where a growing layer needs it.
        """
        if self.arch in ("encoder", "vision"):
            return 0
        usual = 0 if self.layers and all(k.elements for k in self._growing()) else self._usual()
        if not self.layers:
            return self.n_full_layers * usual
        total = 0
        for kind in self._growing():
            elements = kind.elements or self._own(kind) or usual
            total += kind.count * elements // max(kind.size, 1)
        return total

    def _growing(self) -> list[LayerKind]:
        return [kind for kind in self.layers if kind.scope in ("full", "compressed")]

    def _usual(self) -> int:
        if self.projection == "other" and self.n_kv_heads and not self.kv_lora_rank:
            return self.n_kv_heads * (self.d_head + (self.v_head_dim or self.d_head))
        return int(self.attention().cache_elements())

    def _own(self, kind: LayerKind) -> int:
        if not (kind.n_kv_heads or kind.d_head):
            return 0
        return 2 * (kind.n_kv_heads or self.n_kv_heads) * (kind.d_head or self.d_head)

    def shape(self) -> ModelShape:
        """The whole model, with every weight counted.

        Raises:
            UsageError: a model whose layers the file does not describe in full.
        """
        if not self.countable:
            raise UsageError(
                f"{self.name}: its weights cannot be counted from the catalog "
                "(layers of other kinds, or a figure that was not published)"
            )
        from configurator.catalog.counting import shape_of

        return shape_of(self)


def best_total(basis: str, published: int, counted: int) -> int:
    """A published integer before our count, our count before a rounded figure."""
    return published if basis == "exact" else counted or published


def is_mixture(n_experts: int, active: int, total: int) -> bool:
    """Whether experts are named, or a token goes through clearly less than all weights."""
    return n_experts > 0 or 0 < active < 0.9 * total


def from_table(name: str, table: Mapping[str, Any], where: str) -> PublishedModel:
    """One model from its table; a key that is unknown or missing is named with ``where``."""
    values = dict(table)
    try:
        layers = tuple(LayerKind(**kind) for kind in values.pop("layers", ()))
        sources = tuple(values.pop("sources", ()))
        values.setdefault("n_full_layers", 0 if layers else values.get("n_layers", 0))
        return PublishedModel(name=name, layers=layers, sources=sources, **values)
    except TypeError as error:
        raise UsageError(f"{where}: {str(error).partition('__init__() ')[2]}") from None
