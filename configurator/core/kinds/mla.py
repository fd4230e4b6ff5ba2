"""Multi-head latent attention: one compressed latent per token, shared by all heads."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.columns import ceil_div
from configurator.core.dtypes import LATENT_FP8, CacheType
from configurator.core.units import Count, Real

__all__ = ["KIND", "Latent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Keys and values are rebuilt from a latent of ``kv_lora_rank`` values (DeepSeek-V2, 2024).

    The cache holds the latent and one rotary key; every tensor-parallel rank holds all of it.

    Args:
        d_model: width of the residual stream.
        n_heads: query heads.
        kv_lora_rank: rank of the latent that is cached.
        q_lora_rank: rank of the query's own compression; 0 means a plain query projection.
        qk_nope_head_dim: width per head of the key part without position.
        qk_rope_head_dim: width of the rotary key, shared by the heads.
        v_head_dim: width of one value head.
        index_head_dim: width of the sparse-attention indexer's key per token (0: none).
        index_n_heads: heads of that indexer.
        rebuilt: the cache keeps full keys and values per head instead of the latent.
        bias: adds biases to the down-projections and the output (``all``), else ``none``.
        gate_params: further matrices that a token multiplies through, such as an output gate.
        other_params: what else the attention holds: sinks, further norms.
    """

    d_model: Count
    n_heads: Count
    kv_lora_rank: Count
    q_lora_rank: Count = 0
    qk_nope_head_dim: Count = 128
    qk_rope_head_dim: Count = 64
    v_head_dim: Count = 128
    index_head_dim: Count = 0
    index_n_heads: Count = 0
    rebuilt: bool = False
    bias: str = "none"
    gate_params: Count = 0
    other_params: Count = 0

    @property
    def projection(self) -> str:
        """Always MLA, whatever the cache mode."""
        return "MLA"

    @property
    def kv_heads(self) -> Count:
        """1 in latent mode; every head in rebuilt mode."""
        return self.n_heads if self.rebuilt else 1

    @property
    def d_head(self) -> Count:
        """Width of one query-key head: ``qk_nope_head_dim + qk_rope_head_dim``."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def v_width(self) -> Count:
        """Width of one value head."""
        return self.v_head_dim

    @property
    def latent_width(self) -> Count:
        """Values cached in latent mode: the latent and the rotary key, once each."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    def matmul_params(self) -> Count:
        """Down and up projections of queries and of keys/values, and the output projection."""
        plain = self.q_lora_rank == 0
        query_width = self.n_heads * self.d_head
        query = self.d_model * query_width * plain + self.q_lora_rank * (self.d_model + query_width)
        down = self.d_model * self.latent_width
        up = self.kv_lora_rank * self.n_heads * (self.qk_nope_head_dim + self.v_head_dim)
        output = self.n_heads * self.v_head_dim * self.d_model
        return query + down + up + output + self._index() + self.gate_params

    def _index(self) -> Count:
        """The indexer's query, key and weight projections (DeepSeek-V3.2)."""
        rank = self.q_lora_rank + self.d_model * (self.q_lora_rank == 0)
        query = rank * self.index_n_heads * self.index_head_dim
        return query + self.d_model * (self.index_head_dim + self.index_n_heads)

    def params(self) -> Count:
        """The projections, the norms on both latents, and biases where there are any."""
        total = self.matmul_params() + self.kv_lora_rank + self.q_lora_rank + self.other_params
        total = total + 2 * self.index_head_dim  # the indexer's key norm has a scale and a shift
        if self.bias == "all":
            total = total + self.q_lora_rank + self.latent_width + self.d_model
        return total

    def cache_elements(self) -> Count:
        """Latent mode: ``kv_lora_rank + rope (+ indexer key)``; rebuilt: full K and V per head."""
        if self.rebuilt:
            return self.n_heads * (self.d_head + self.v_head_dim) + self.index_head_dim
        return self.latent_width + self.index_head_dim

    def cache_bytes(self, kv: CacheType, tensor_parallel: Count = 1) -> Count:
        """Bytes per token on one rank. The latent is copied to every rank; rebuilt heads split."""
        if not self.rebuilt and kv.k == LATENT_FP8:
            return self._fp8_layout_bytes()
        if not self.rebuilt:
            return kv.k.bytes_for(self.latent_width + self.index_head_dim)
        heads = self.n_heads // tensor_parallel
        index = kv.k.bytes_for(self.index_head_dim)
        return kv.k.bytes_for(heads * self.d_head) + kv.v.bytes_for(heads * self.v_head_dim) + index

    def _fp8_layout_bytes(self) -> Count:
        """FlashMLA's layout: an fp8 latent, a float32 scale per 128 of it, a bf16 rotary key.

        656 bytes for a rank of 512 (deepseek-ai/FlashMLA); an indexer's key takes a byte a value
        and a float32 scale per 128.
        """
        index = self.index_head_dim + 4 * ceil_div(self.index_head_dim, 128)
        scales = 4 * ceil_div(self.kv_lora_rank, 128)
        return self.kv_lora_rank + scales + 2 * self.qk_rope_head_dim + index

    def score_flops(self, phase: str = "decode") -> Real:
        """Decode on a latent is absorbed: ``2h(r+rope) + 2hr``; prefill and rebuilt use heads."""
        if self.rebuilt or phase == "prefill":
            return 2.0 * self.n_heads * (self.d_head + self.v_head_dim)
        return 2.0 * self.n_heads * (self.latent_width + self.kv_lora_rank)

    def expansion_flops(self) -> Real:
        """Rebuilding one cached token's keys and values from its latent, for all heads."""
        widths = self.qk_nope_head_dim + self.v_head_dim
        return 2.0 * self.kv_lora_rank * self.n_heads * widths


KIND = Latent
