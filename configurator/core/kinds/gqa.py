"""Grouped-query attention; multi-head (MHA) and multi-query (MQA) attention are its two ends."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.columns import ceil_div, given, plus
from configurator.core.dtypes import CacheType
from configurator.core.units import Count, Real

__all__ = ["KIND", "GroupedQuery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQuery:
    """``n_heads`` query heads share ``n_kv_heads`` key/value heads (Ainslie et al. 2023).

    Args:
        d_model: width of the residual stream that is read and written.
        n_heads: query heads; a multiple of ``n_kv_heads``.
        n_kv_heads: key/value heads: ``n_heads`` is MHA, 1 is MQA.
        d_head: width of one query or key head; stored, never derived from ``d_model``.
        v_head_dim: width of one value head where it differs; 0 means ``d_head``.
        d_source: width of what keys and values are projected from, where it is not ``d_model``.
        bias: ``none``, ``qkv``, ``all`` (Q, K, V and output) or ``o``.
        qk_norm: learned scales of ``d_head`` on queries and on keys, shared by the heads.
        value_is_key: values are the keys, so there is no value projection (the cache keeps both).
        own_kv: False where keys and values are read from another layer's cache: no projections
            for them here.
        gate_params: further matrices that a token multiplies through, such as an output gate.
        other_params: what else the attention holds: sinks, norms over the whole width, scales.
    """

    d_model: Count
    n_heads: Count
    n_kv_heads: Count
    d_head: Count
    v_head_dim: Count = 0
    d_source: Count = 0
    bias: str = "none"
    qk_norm: bool = False
    value_is_key: bool = False
    own_kv: bool = True
    gate_params: Count = 0
    other_params: Count = 0

    @property
    def projection(self) -> str:
        """MHA, GQA or MQA by the number of KV heads in use."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"

    @property
    def kv_heads(self) -> Count:
        """Key/value heads in the cache."""
        return self.n_kv_heads

    @property
    def group(self) -> Count:
        """Query heads that share one KV head."""
        return self.n_heads // self.n_kv_heads

    @property
    def v_width(self) -> Count:
        """Width of one value head."""
        return given(self.v_head_dim, self.d_head)

    @property
    def qkv_width(self) -> Count:
        """Outputs of the fused query, key and value projection."""
        return self.n_heads * self.d_head + self.n_kv_heads * (self.d_head + self.v_width)

    @property
    def _plain(self) -> bool:
        """Whether keys and values are read from ``d_model`` by projections of their own."""
        other = isinstance(self.d_source, int) and self.d_source == 0
        return other and self.own_kv and not self.value_is_key

    def matmul_params(self) -> Count:
        """Q, K, V, output and gates: ``d*h*d_head + d_src*kv*(d_head+v) + h*v*d + gates``."""
        if self._plain:
            heads = self.n_heads + self.n_kv_heads
            return plus(self.d_model * (heads * (self.d_head + self.v_width)), self.gate_params)
        source = given(self.d_source, self.d_model)
        values = 0 if self.value_is_key else self.v_width
        query = self.d_model * self.n_heads * self.d_head
        key_value = source * self.n_kv_heads * (self.d_head + values) if self.own_kv else 0
        return query + key_value + self.n_heads * self.v_width * self.d_model + self.gate_params

    def params(self) -> Count:
        """Projections, their biases and the QK-norm scales; the block's own norms are not here."""
        total = plus(self.matmul_params(), self.other_params)
        if self.bias in ("qkv", "all"):
            values = self.n_kv_heads * self.v_width * self.value_is_key  # no projection, no bias
            total = total + (self.qkv_width - values if self.own_kv else self.n_heads * self.d_head)
        if self.bias in ("o", "all"):
            total = total + self.d_model
        if self.qk_norm:
            total = total + (2 if self.own_kv else 1) * self.d_head
        return total

    def cache_elements(self) -> Count:
        """Keys and values of one token: ``n_kv_heads * (d_head + v_width)``."""
        return self.n_kv_heads * (self.d_head + self.v_width)

    def cache_bytes(self, kv: CacheType, tensor_parallel: Count = 1) -> Count:
        """Bytes per token on the fullest rank, which holds ``ceil(n_kv_heads / tp)`` whole heads.

        Servers copy a KV head where there are more ranks than heads (vLLM, SGLang).
        """
        heads = ceil_div(self.n_kv_heads, tensor_parallel)
        if kv.k == kv.v and kv.k.block == 1:
            return heads * ((self.d_head + self.v_width) * kv.k.block_bytes)
        return kv.k.bytes_for(heads * self.d_head) + kv.v.bytes_for(heads * self.v_width)

    def score_flops(self, phase: str = "decode") -> Real:
        """One multiply-add per key and per value element of every query head; softmax ignored."""
        return 2.0 * self.n_heads * (self.d_head + self.v_width)


KIND = GroupedQuery
