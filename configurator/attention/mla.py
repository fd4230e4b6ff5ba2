"""Multi-head latent attention: keys and values are rebuilt from one cached latent per token.

Expanded (for prompts): the latent is projected up to per-head keys and values, then attention is
as usual. Absorbed (for decode): since ``q . (W_uk c) = (W_uk^T q) . c``, the up-projection moves
into the query and the output, and all heads read the latent itself, one shared "KV head" of width
R + P. Same numbers, other arithmetic (DeepSeek-V2, 2024, section 2.1).

Shape suffixes: B batch, S query tokens, T key tokens, D model width, H heads, R rank of the
latent (kv_lora_rank), N width of a key part without position (qk_nope_head_dim), P width of the
rotary part (qk_rope_head_dim), F width of a value head (v_head_dim).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from configurator.attention.cache import Cache
from configurator.attention.gqa import combine_heads, mask, split_heads
from configurator.attention.rope import rotate, tables
from configurator.core.kinds.mla import Latent

__all__ = ["LatentAttention"]


class LatentAttention(nn.Module):
    """One layer's latent attention; parameters equal the core's count.

    Projections carry DeepSeek's names: ``q_a``/``q_b`` compress and expand the query (``q_proj``
    where it is not compressed), ``kv_a`` makes latent and rotary key, ``kv_b`` expands.

    Args:
        geometry: ranks and widths. The sparse indexer of DeepSeek-V3.2 is not built.
        rope_base: base of the rotary embedding on the P-wide parts.
        interleaved: rotary pairs are neighbours (DeepSeek's weights), not halves.
        causal: a query sees itself and earlier tokens.
    """

    def __init__(
        self,
        geometry: Latent,
        *,
        rope_base: float = 10_000.0,
        interleaved: bool = True,
        causal: bool = True,
    ) -> None:
        super().__init__()
        g = self.geometry = geometry
        if g.index_head_dim or g.rebuilt or g.gate_params or g.other_params:
            raise ValueError("this module has a latent cache, and neither an indexer nor gates")
        self.rope_base, self.interleaved, self.causal = rope_base, interleaved, causal
        self.n_heads, self.rank = int(g.n_heads), int(g.kv_lora_rank)
        self.nope, self.rope = int(g.qk_nope_head_dim), int(g.qk_rope_head_dim)
        self.v_width, self.q_rank = int(g.v_head_dim), int(g.q_lora_rank)
        self.scale = (self.nope + self.rope) ** -0.5
        width, query_width = int(g.d_model), self.n_heads * (self.nope + self.rope)
        bias = g.bias == "all"
        if self.q_rank:
            self.q_a = nn.Linear(width, self.q_rank, bias=bias)
            self.q_a_norm = nn.RMSNorm(self.q_rank, eps=1e-6)
            self.q_b = nn.Linear(self.q_rank, query_width, bias=False)
        else:
            self.q_proj = nn.Linear(width, query_width, bias=False)
        self.kv_a = nn.Linear(width, self.rank + self.rope, bias=bias)
        self.kv_a_norm = nn.RMSNorm(self.rank, eps=1e-6)
        self.kv_b = nn.Linear(self.rank, self.n_heads * (self.nope + self.v_width), bias=False)
        self.o_proj = nn.Linear(self.n_heads * self.v_width, width, bias=bias)

    def queries(self, x_BSD: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Parts without and with position: (B, H, S, N) and (B, H, S, P)."""
        flat = self.q_b(self.q_a_norm(self.q_a(x_BSD))) if self.q_rank else self.q_proj(x_BSD)
        q_BHSE = split_heads(flat, self.n_heads)
        nope_BHSN, rope_BHSP = q_BHSE[..., : self.nope], q_BHSE[..., self.nope :]
        return nope_BHSN, rotate(rope_BHSP, turn, interleaved=self.interleaved)

    def latents(self, x_BSD: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """What is cached: normed latent and rotary key side by side, (B, 1, S, R + P)."""
        down_B1SW = self.kv_a(x_BSD)[:, None]
        c_B1SR = self.kv_a_norm(down_B1SW[..., : self.rank])
        k_B1SP = rotate(down_B1SW[..., self.rank :], turn, interleaved=self.interleaved)
        return torch.cat((c_B1SR, k_B1SP), dim=-1)

    def up(self) -> tuple[Tensor, Tensor]:
        """The expansion's two halves: to keys (H, N, R) and to values (H, F, R)."""
        w_HUR = self.kv_b.weight.view(self.n_heads, -1, self.rank)
        return w_HUR[:, : self.nope], w_HUR[:, self.nope :]

    def expanded(
        self, q: tuple[Tensor, Tensor], latent_B1TW: Tensor, mask_ST: Tensor | None
    ) -> Tensor:
        """Rebuild every head's keys and values, then attend: (B, H, S, F)."""
        nope_BHSN, rope_BHSP = q
        c_BTR, k_BTP = latent_B1TW[:, 0, :, : self.rank], latent_B1TW[:, 0, :, self.rank :]
        kv_BHTU = split_heads(self.kv_b(c_BTR), self.n_heads)
        k_BHTN, v_BHTF = kv_BHTU[..., : self.nope], kv_BHTU[..., self.nope :]
        scores_BHST = torch.einsum("bhsn,bhtn->bhst", nope_BHSN, k_BHTN)
        scores_BHST = scores_BHST + torch.einsum("bhsp,btp->bhst", rope_BHSP, k_BTP)
        return torch.einsum("bhst,bhtf->bhsf", self._weights(scores_BHST, mask_ST), v_BHTF)

    def absorbed(
        self, q: tuple[Tensor, Tensor], latent_B1TW: Tensor, mask_ST: Tensor | None
    ) -> Tensor:
        """Attend to the latent itself, as one shared head: (B, H, S, F)."""
        nope_BHSN, rope_BHSP = q
        c_BTR = latent_B1TW[:, 0, :, : self.rank]
        key_HNR, value_HFR = self.up()
        absorbed_BHSR = torch.einsum("bhsn,hnr->bhsr", nope_BHSN, key_HNR)
        q_BHSW = torch.cat((absorbed_BHSR, rope_BHSP), dim=-1)
        scores_BHST = torch.einsum("bhsw,btw->bhst", q_BHSW, latent_B1TW[:, 0])
        mixed_BHSR = torch.einsum("bhst,btr->bhsr", self._weights(scores_BHST, mask_ST), c_BTR)
        return torch.einsum("bhsr,hfr->bhsf", mixed_BHSR, value_HFR)

    def _weights(self, scores_BHST: Tensor, mask_ST: Tensor | None) -> Tensor:
        scores_BHST = scores_BHST * self.scale
        if mask_ST is not None:
            scores_BHST = scores_BHST.masked_fill(~mask_ST, float("-inf"))
        return scores_BHST.softmax(dim=-1)

    def forward(
        self, x_BSD: Tensor, *, cache: Cache | None = None, absorbed: bool = False
    ) -> Tensor:
        """Self-attention over ``x`` and, with a ``cache``, the tokens before it: (B, S, D)."""
        start = cache.length if cache is not None else 0
        positions_S = torch.arange(start, start + x_BSD.shape[1], device=x_BSD.device)
        turn = tables(positions_S, self.rope, self.rope_base)
        q = self.queries(x_BSD, turn)
        latent_B1SW, positions_T = self.latents(x_BSD, turn), positions_S
        if cache is not None:
            (latent_B1SW,), positions_T = cache.update(latent_B1SW)
        mask_ST = mask(positions_S, positions_T) if self.causal else None
        attend = self.absorbed if absorbed else self.expanded
        heads_BHSF = attend(q, latent_B1SW.to(x_BSD.dtype), mask_ST)
        out_BSD: Tensor = self.o_proj(combine_heads(heads_BHSF))
        return out_BSD
