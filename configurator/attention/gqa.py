"""Grouped-query attention with its ends MHA and MQA: project, split heads, attend, combine.

Every query head is its own small attention of width E over keys that it shares with the other
heads of its group; heads meet again only in the output projection (Vaswani et al. 2017, section
3.2.2; Shazeer 2019; Ainslie et al. 2023).

Shape suffixes: B batch, S query tokens, T key tokens, D model width, H query heads, K key/value
heads, G = H / K query heads of one group, E width of a query or key head, F width of a value head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from configurator.attention.cache import Cache
from configurator.attention.rope import rotate, tables
from configurator.core.kinds.gqa import GroupedQuery

__all__ = ["GroupedQueryAttention", "attend", "combine_heads", "mask", "split_heads"]


def split_heads(x_BSD: Tensor, n_heads: int) -> Tensor:
    """(B, S, N * E) to (B, N, S, E): one slice of the projection for each head."""
    return x_BSD.reshape(*x_BSD.shape[:-1], n_heads, -1).transpose(1, 2)


def combine_heads(x_BHSF: Tensor) -> Tensor:
    """(B, H, S, F) to (B, S, H * F): heads side by side again."""
    return x_BHSF.transpose(1, 2).flatten(-2)


def mask(positions_S: Tensor, positions_T: Tensor, window: int = 0) -> Tensor:
    """True where a query may look: at itself and earlier, at most ``window`` tokens (0: all)."""
    distance_ST = positions_S[:, None] - positions_T[None, :]
    allowed = distance_ST >= 0
    return allowed & (distance_ST < window) if window else allowed


def attend(
    q_BHSE: Tensor, k_BKTE: Tensor, v_BKTF: Tensor, mask_ST: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """``softmax(q k^T / sqrt(E)) v`` in every head; gives (B, H, S, F) and weights (B, H, S, T).

    Query heads ``k * G .. k * G + G - 1`` read KV head ``k``: a view, so nothing is copied.
    """
    batch, _, length, width = q_BHSE.shape
    q_BKGSE = q_BHSE.reshape(batch, k_BKTE.shape[1], -1, length, width)
    scores_BKGST = torch.einsum("bkgse,bkte->bkgst", q_BKGSE, k_BKTE) * width**-0.5
    if mask_ST is not None:
        scores_BKGST = scores_BKGST.masked_fill(~mask_ST, float("-inf"))
    weights_BKGST = scores_BKGST.softmax(dim=-1)
    heads_BKGSF = torch.einsum("bkgst,bktf->bkgsf", weights_BKGST, v_BKTF)
    return heads_BKGSF.flatten(1, 2), weights_BKGST.flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    """One layer's attention, built from the core's geometry; parameters equal its count.

    Args:
        geometry: heads, widths, bias and QK-norm.
        rope_base: base of the rotary embedding; None leaves positions out.
        causal: a query sees itself and earlier tokens; False for an encoder.
        window: a query sees at most so many tokens; 0 means all.
        cross: keys and values come from another sequence: no positions, no mask.

    Weights start as ``nn.Linear`` starts them; initialisation is advice, not part of a layer.
    """

    def __init__(
        self,
        geometry: GroupedQuery,
        *,
        rope_base: float | None = 10_000.0,
        causal: bool = True,
        window: int = 0,
        cross: bool = False,
    ) -> None:
        super().__init__()
        g = self.geometry = geometry
        if g.n_heads % g.n_kv_heads:
            raise ValueError(
                f"n_heads {g.n_heads} is not a multiple of n_kv_heads {g.n_kv_heads}; "
                "every KV head serves a whole group"
            )
        if not g.own_kv or g.gate_params or g.other_params:
            raise ValueError("this module has its own keys and values, and neither gates nor sinks")
        self.rope_base, self.causal, self.window, self.cross = rope_base, causal, window, cross
        width, source = int(g.d_model), int(g.d_source or g.d_model)
        self.n_heads, self.n_kv_heads = int(g.n_heads), int(g.n_kv_heads)
        self.d_head, self.v_width = int(g.d_head), int(g.v_width)
        qkv, o = g.bias in ("qkv", "all"), g.bias in ("o", "all")
        self.q_proj = nn.Linear(width, self.n_heads * self.d_head, bias=qkv)
        self.k_proj = nn.Linear(source, self.n_kv_heads * self.d_head, bias=qkv)
        self.v_proj = (
            None if g.value_is_key else nn.Linear(source, self.n_kv_heads * self.v_width, bias=qkv)
        )
        self.o_proj = nn.Linear(self.n_heads * self.v_width, width, bias=o)
        self.q_norm = nn.RMSNorm(self.d_head, eps=1e-6) if g.qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(self.d_head, eps=1e-6) if g.qk_norm else nn.Identity()

    def keys_values(self, source_BTD: Tensor, turn: tuple[Tensor, Tensor] | None) -> list[Tensor]:
        """Keys (B, K, T, E), turned where ``turn`` is given, and values (B, K, T, F)."""
        k_BKTE = split_heads(self.k_proj(source_BTD), self.n_kv_heads)
        values = k_BKTE
        if self.v_proj is not None:
            values = split_heads(self.v_proj(source_BTD), self.n_kv_heads)
        return [self._turned(self.k_norm(k_BKTE), turn), values]

    @staticmethod
    def _turned(x_BNSE: Tensor, turn: tuple[Tensor, Tensor] | None) -> Tensor:
        return x_BNSE if turn is None else rotate(x_BNSE, turn)

    def forward(
        self,
        x_BSD: Tensor,
        source_BTD: Tensor | None = None,
        *,
        cache: Cache | None = None,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attention of ``x`` over itself, or over ``source`` for a layer built with ``cross``.

        With a ``cache``, self-attention continues after the tokens it holds; cross-attention
        fills it from ``source`` once and later steps need no source. Gives (B, S, D), and with
        ``need_weights`` the weights (B, H, S, T) too.
        """
        q_BHSE = self.q_norm(split_heads(self.q_proj(x_BSD), self.n_heads))
        if self.cross:
            k_BKTE, v_BKTF = self._crossed(source_BTD, cache)
            mask_ST = None
        else:
            start = cache.length if cache is not None else 0
            positions_S = torch.arange(start, start + x_BSD.shape[1], device=x_BSD.device)
            turn = None
            if self.rope_base is not None:
                turn = tables(positions_S, self.d_head, self.rope_base)
            q_BHSE = self._turned(q_BHSE, turn)
            (k_BKTE, v_BKTF), positions_T = self.keys_values(x_BSD, turn), positions_S
            if cache is not None:
                (k_BKTE, v_BKTF), positions_T = cache.update(k_BKTE, v_BKTF)
            mask_ST = mask(positions_S, positions_T, self.window) if self.causal else None
        heads_BHSF, weights_BHST = attend(
            q_BHSE, k_BKTE.to(q_BHSE.dtype), v_BKTF.to(q_BHSE.dtype), mask_ST
        )
        out_BSD: Tensor = self.o_proj(combine_heads(heads_BHSF))
        return (out_BSD, weights_BHST) if need_weights else out_BSD

    def _crossed(self, source_BTD: Tensor | None, cache: Cache | None) -> list[Tensor]:
        if source_BTD is None:
            if cache is None or not cache.length:
                raise ValueError("cross-attention needs a source, or a cache filled from one")
            return cache.held()
        found = self.keys_values(source_BTD, None)
        if cache is not None:
            found, _ = cache.update(*found)
        return found
