"""Multi-query attention whose one cached vector is key and value at once (DeepSeek-V4, 2026)."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.dtypes import CacheType
from configurator.core.units import Count, Real

__all__ = ["KIND", "SharedKeyValue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKeyValue:
    """All heads read one vector of ``d_head`` values per token, as key and as value.

    Queries come from a low-rank projection; the output is projected in groups, then mixed.

    Args:
        d_model: width of the residual stream.
        n_heads: query heads.
        d_head: width of a query head and of the cached vector.
        q_lora_rank: rank of the query projection.
        o_groups: groups of the output projection.
        o_lora_rank: width that each group is projected to.
        index_head_dim: width of an indexer's key cached beside the vector (0: none).
        gate_params: further matrices that a token multiplies through: compressors, indexers.
        other_params: what else the attention holds: norms, sinks, position biases.
    """

    d_model: Count
    n_heads: Count
    d_head: Count
    q_lora_rank: Count
    o_groups: Count
    o_lora_rank: Count
    index_head_dim: Count = 0
    gate_params: Count = 0
    other_params: Count = 0

    @property
    def projection(self) -> str:
        """MQA: one key/value head serves every query head."""
        return "MQA"

    @property
    def kv_heads(self) -> Count:
        """One."""
        return 1

    @property
    def n_kv_heads(self) -> Count:
        """One."""
        return 1

    @property
    def v_width(self) -> Count:
        """The value is the key."""
        return self.d_head

    def matmul_params(self) -> Count:
        """Query down and up, key-value, output by groups and mixed, and the further matrices."""
        query = self.q_lora_rank * (self.d_model + self.n_heads * self.d_head)
        output = self.o_lora_rank * self.n_heads * self.d_head
        mix = self.o_groups * self.o_lora_rank * self.d_model
        return query + self.d_model * self.d_head + output + mix + self.gate_params

    def params(self) -> Count:
        """The projections, the norms on the query's rank and on the vector, and the rest."""
        return self.matmul_params() + self.q_lora_rank + self.d_head + self.other_params

    def cache_elements(self) -> Count:
        """The vector, once, and the indexer's key."""
        return self.d_head + self.index_head_dim

    def cache_bytes(self, kv: CacheType, tensor_parallel: Count = 1) -> Count:
        """Bytes per token on one rank; every rank holds all of it."""
        return kv.k.bytes_for(self.d_head + self.index_head_dim)

    def score_flops(self, phase: str = "decode") -> Real:
        """One multiply-add per key and per value element of every query head; softmax ignored."""
        return 4.0 * self.n_heads * self.d_head


KIND = SharedKeyValue
