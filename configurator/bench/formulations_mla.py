"""Every way to compute one decode step on a latent cache: absorbed and expanded.

What is timed starts from the absorbed query and ends at the mixed latent: absorbing and
projecting out read weights, not the cache, and are counted with the weights. The expanded form
rebuilds keys and values of every head at each step; that is its cost and is timed.

Shape suffixes as in :mod:`configurator.bench.problem`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from configurator.bench.formulations import (
    Call,
    Formulation,
    Unsupported,
    _attend,
    _compiler,
    _fused_part,
    merge,
    parts,
)
from configurator.bench.problem import Problem

__all__ = ["DECODE_MLA"]


def _rank(p: Problem) -> int:
    if p.w_key is None:
        raise Unsupported("the cache is not a latent")
    return p.w_key.shape[2]


def _absorbed(p: Problem) -> Call:
    rank, q_BHW = _rank(p), p.query[:, :, 0]

    def call(i: int) -> Tensor:
        latent_BTW = p.reading(i)[0][:, 0]
        out = _attend(q_BHW, latent_BTW.transpose(-1, -2), latent_BTW[..., :rank], p.scale)
        return out.unsqueeze(2)

    return call


def _absorbed_fused(p: Problem) -> Call:
    """Keys and values are one tensor as wide as the key, so that the fused kernel takes it."""
    rank, q_B1HW = _rank(p), p.query.transpose(1, 2)

    def call(i: int) -> Tensor:
        (latent_B1TW,) = p.reading(i)
        out = sdpa(q_B1HW, latent_B1TW, latent_B1TW, scale=p.scale)
        return out.transpose(1, 2)[..., :rank]

    return call


def _absorbed_split(p: Problem) -> Call:
    rank, count = _rank(p), parts(p)
    if p.device != "cpu":
        raise Unsupported("the kernel splits by itself here")
    width = p.query.shape[-1]
    q = p.query.transpose(1, 2).expand(-1, count, -1, -1)

    def call(i: int) -> Tensor:
        latent = p.reading(i)[0].view(p.batch, count, -1, width)
        out, lse = _fused_part(q, latent, latent, p.scale)
        return merge(out.unsqueeze(1), lse.unsqueeze(1))[:, 0, :, None, :rank]

    return call


def _absorbed_sdpa(p: Problem) -> Call:
    rank = _rank(p)

    def call(i: int) -> Tensor:
        (latent_B1TW,) = p.reading(i)
        return sdpa(p.query, latent_B1TW, latent_B1TW[..., :rank], scale=p.scale, enable_gqa=True)

    return call


def _expanded(p: Problem) -> Call:
    rank = _rank(p)
    if p.raw_query is None or p.w_key is None or p.w_value is None:
        raise Unsupported("the cache is not a latent")
    up_HUR = torch.cat((p.w_key, p.w_value), dim=1)
    heads, nope, _ = p.w_key.shape
    flat_RX = up_HUR.reshape(-1, rank).t().contiguous()
    q_BHSN, q_BHSP = p.raw_query[..., :nope], p.raw_query[..., nope:]

    def call(i: int) -> Tensor:
        latent_BTW = p.reading(i)[0][:, 0]
        kv_BTHU = torch.matmul(latent_BTW[..., :rank], flat_RX).view(p.batch, p.context, heads, -1)
        k_BHTN, v_BHTF = (t.transpose(1, 2) for t in (kv_BTHU[..., :nope], kv_BTHU[..., nope:]))
        rope_B1PT = latent_BTW[:, None, :, rank:].transpose(-1, -2)
        scores = torch.matmul(q_BHSN, k_BHTN.transpose(-1, -2)) + torch.matmul(q_BHSP, rope_B1PT)
        return torch.matmul((scores * p.scale).softmax(dim=-1), v_BHTF)

    return call


def _absorbed_compiled(p: Problem) -> Call:
    _compiler(p)
    rank, q_BHW = _rank(p), p.query[:, :, 0]
    fast = torch.compile(_attend, dynamic=False)

    def call(i: int) -> Tensor:
        latent_BTW = p.reading(i)[0][:, 0]
        out = fast(q_BHW, latent_BTW.transpose(-1, -2), latent_BTW[..., :rank], p.scale)
        return out.unsqueeze(2)

    return call


def _rebuilt_caches(group: int) -> float:
    """Rebuilt keys and values over the latent: 320 to 576 values a head in DeepSeek's shape."""
    return 1.2 * group


DECODE_MLA: tuple[Formulation, ...] = (
    Formulation(
        name="absorbed_fused",
        about="SDPA on the latent as both K and V, cut to the rank afterwards",
        build=_absorbed_fused,
        latent=True,
    ),
    Formulation(name="absorbed", about="two products on the latent", build=_absorbed, latent=True),
    Formulation(
        name="absorbed_split",
        about="torch's CPU kernel on parts of the latent, merged",
        build=_absorbed_split,
        latent=True,
    ),
    Formulation(
        name="absorbed_sdpa",
        about="SDPA as it comes, V narrower than K",
        build=_absorbed_sdpa,
        latent=True,
        extra_caches=lambda group: 2.0 * group,
    ),
    Formulation(
        name="expanded",
        about="keys and values of every head rebuilt at each step",
        build=_expanded,
        latent=True,
        extra_caches=_rebuilt_caches,
    ),
    Formulation(
        name="absorbed_compiled",
        about="torch.compile on the absorbed products",
        build=_absorbed_compiled,
        latent=True,
        compiles=True,
    ),
)
