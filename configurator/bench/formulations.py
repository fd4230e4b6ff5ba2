"""Every way to compute one decode step that this device has; they differ by up to ten times.

A formulation takes a problem and gives a call: ``call(i)`` attends to the ``i``-th copy of the
cache. All of one kind give the same numbers, which is checked before any is timed.

Shape suffixes as in :mod:`configurator.bench.problem`; C parts of a split context.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from configurator.bench.problem import Problem

__all__ = ["DECODE", "Formulation", "Unsupported", "formulations"]

Call = Callable[[int], Tensor]
_PAGE = 512  # tokens; of 128 to 1,024 the fastest where it was tried


class Unsupported(Exception):  # noqa: N818 - it is an answer, not a failure
    """This device or shape does not have the formulation; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formulation:
    """One way to compute: ``build`` raises :class:`Unsupported` where it is not to be had.

    ``extra_caches`` is the memory it takes beside the cache, in multiples of it (a function of
    the query group); ``compiles`` marks those whose first call may take a minute.
    """

    name: str
    about: str
    build: Callable[[Problem], Call]
    latent: bool = False
    compiles: bool = False
    extra_caches: Callable[[int], float] = lambda group: 0.0


def _sdpa(p: Problem) -> Call:
    grouped = p.group > 1

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        return sdpa(p.query, k, v, scale=p.scale, enable_gqa=grouped)

    return call


def _repeated(p: Problem) -> Call:
    if p.group == 1:
        raise Unsupported("every query head has its own keys and values")

    def call(i: int) -> Tensor:
        k, v = (t.repeat_interleave(p.group, dim=1) for t in p.reading(i))
        return sdpa(p.query, k, v, scale=p.scale)

    return call


def _by_group(p: Problem) -> Tensor:
    """The query with its group as the query axis: (B, K, G, E). One new token a sequence only."""
    return p.query.view(p.batch, p.slots[0][0].shape[1], p.group, -1)


def _folded(p: Problem) -> Call:
    if p.group == 1:
        raise Unsupported("there is no group to fold")
    q_BKGE = _by_group(p)

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        return sdpa(q_BKGE, k, v, scale=p.scale).view(p.batch, -1, 1, v.shape[-1])

    return call


def _attend(q_BKGE: Tensor, k_BKET: Tensor, v_BKTF: Tensor, scale: float) -> Tensor:
    weights_BKGT = (torch.matmul(q_BKGE, k_BKET) * scale).softmax(dim=-1)
    return torch.matmul(weights_BKGT, v_BKTF)


def _products(p: Problem) -> Call:
    q_BKGE = _by_group(p)

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        out = _attend(q_BKGE, k.transpose(-1, -2), v, p.scale)
        return out.view(p.batch, -1, 1, v.shape[-1])

    return call


def _transposed(p: Problem) -> Call:
    q_BKGE = _by_group(p)
    first, *rest = (slot[0] for slot in p.slots)
    batch, heads, tokens, width = first.shape
    # Only the first copy has to hold the right keys: the others are timed and never looked at.
    stored = [first.transpose(-1, -2).contiguous()]
    stored += [k.view(batch, heads, width, tokens) for k in rest]

    def call(i: int) -> Tensor:
        _, v = p.reading(i)
        out = _attend(q_BKGE, stored[i % len(stored)].to(p.compute), v, p.scale)
        return out.view(p.batch, -1, 1, v.shape[-1])

    return call


def _scaled_left(p: Problem) -> Tensor:
    """The query as a right factor, scaled beforehand: (B, K, E, G)."""
    return (_by_group(p) * p.scale).transpose(-1, -2).contiguous()


def _cache_left(p: Problem) -> Call:
    """The cache is each product's large left factor: the faster order in 16 bit on a CPU."""
    q_BKEG = _scaled_left(p)
    first, *rest = (slot[1] for slot in p.slots)
    batch, heads, tokens, width = first.shape
    stored = [first.transpose(-1, -2).contiguous()]
    stored += [v.view(batch, heads, width, tokens) for v in rest]

    def call(i: int) -> Tensor:
        k, _ = p.reading(i)
        scores_BKGT = torch.matmul(k, q_BKEG).transpose(-1, -2).contiguous()
        weights_BKTG = scores_BKGT.softmax(dim=-1).transpose(-1, -2)
        out_BKFG = torch.matmul(stored[i % len(stored)].to(p.compute), weights_BKTG)
        return out_BKFG.transpose(-1, -2).reshape(p.batch, -1, 1, width)

    return call


def _cache_left_pages(p: Problem) -> Call:
    """The same with values in pages, each (width, tokens): a product then stays in the cache."""
    if p.context % _PAGE or p.context == _PAGE:
        raise Unsupported(f"the context is not several pages of {_PAGE} tokens")
    pages, q_BKEG = p.context // _PAGE, _scaled_left(p)
    first, *rest = (slot[1] for slot in p.slots)
    batch, heads, _, width = first.shape
    shape = (batch, heads, pages, width, _PAGE)
    stored = [first.view(batch, heads, pages, _PAGE, width).transpose(-1, -2).contiguous()]
    stored += [v.view(shape) for v in rest]

    def call(i: int) -> Tensor:
        k, _ = p.reading(i)
        scores_BKGT = torch.matmul(k, q_BKEG).transpose(-1, -2).contiguous()
        weights = scores_BKGT.softmax(dim=-1).view(batch, heads, p.group, pages, _PAGE)
        out = torch.matmul(stored[i % len(stored)].to(p.compute), weights.permute(0, 1, 3, 4, 2))
        return out.sum(dim=2).transpose(-1, -2).reshape(p.batch, -1, 1, width)

    return call


def parts(p: Problem) -> int:
    """Pieces of the context: enough for every unit of the device, each of 256 tokens or more."""
    units = 4
    if p.device.startswith("cuda"):
        busy = p.batch * p.slots[0][0].shape[1]
        units = max(4, 2 * torch.cuda.get_device_properties(p.device).multi_processor_count // busy)
    for count in (1 << n for n in range(units.bit_length(), 0, -1)):
        if p.context % count == 0 and p.context // count >= 256:
            return count
    raise Unsupported("the context is too short, or odd, to be split")


def merge(out_BKCGF: Tensor, lse_BKCG: Tensor) -> Tensor:
    """Parts of a split softmax weighed by what each saw (their log-sum-exp): (B, K, G, F)."""
    share_BKCG = lse_BKCG.softmax(dim=2)
    return (out_BKCGF * share_BKCG.unsqueeze(-1).to(out_BKCGF.dtype)).sum(dim=2)


def _split(p: Problem) -> Call:
    count, q_BKGE = parts(p), _by_group(p)

    def call(i: int) -> Tensor:
        k, v = (t.unflatten(2, (count, -1)) for t in p.reading(i))  # type: ignore[no-untyped-call]
        scores_BKCGT = torch.matmul(q_BKGE.unsqueeze(2), k.transpose(-1, -2)) * p.scale
        lse_BKCG = scores_BKCGT.logsumexp(dim=-1)
        out = torch.matmul((scores_BKCGT - lse_BKCG.unsqueeze(-1)).exp(), v)
        return merge(out, lse_BKCG).view(p.batch, -1, 1, v.shape[-1])

    return call


def _fused_part(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Torch's own CPU kernel with the log-sum-exp it keeps for the backward pass."""
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, scale=scale)
    return found[0], found[1]


def _fused_split(p: Problem) -> Call:
    if p.device != "cpu":
        raise Unsupported("the kernel splits by itself here")
    k, v = p.slots[0]
    if k.shape[-1] != v.shape[-1]:
        raise Unsupported("key and value widths differ")
    count = parts(p)
    batch, heads, _, width = k.shape
    q = _by_group(p).view(batch * heads, 1, p.group, width).expand(-1, count, -1, -1)

    def call(i: int) -> Tensor:
        k, v = (t.view(batch * heads, count, -1, width) for t in p.reading(i))
        out, lse = _fused_part(q, k, v, p.scale)
        lse_BKCG = lse.view(batch, heads, count, p.group)
        merged = merge(out.view(batch, heads, count, p.group, width), lse_BKCG)
        return merged.view(batch, -1, 1, width)

    return call


def _compiler(p: Problem) -> None:
    if p.device == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise Unsupported("torch.compile needs a C++ compiler")


def _compiled(p: Problem) -> Call:
    _compiler(p)
    q_BKGE = _by_group(p)
    fast = torch.compile(_attend, dynamic=False)

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        out = fast(q_BKGE, k.transpose(-1, -2), v, p.scale)
        return out.view(p.batch, -1, 1, v.shape[-1])

    return call


def _flex(p: Problem) -> Call:
    _compiler(p)
    if p.device == "mps":
        raise Unsupported("FlexAttention has no MPS kernel")
    from torch.nn.attention.flex_attention import flex_attention

    fast: Any = torch.compile(flex_attention, dynamic=False)
    grouped = p.group > 1

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        return fast(p.query, k, v, scale=p.scale, enable_gqa=grouped)  # type: ignore[no-any-return]

    return call


DECODE: tuple[Formulation, ...] = (
    Formulation(
        name="folded",
        about="SDPA, the query group folded into the query axis",
        build=_folded,
    ),
    Formulation(name="products", about="two batched products round a softmax", build=_products),
    Formulation(
        name="sdpa",
        about="SDPA as it comes, enable_gqa where heads are shared",
        build=_sdpa,
        extra_caches=lambda group: 2.0 * group,
    ),
    Formulation(
        name="repeated",
        about="K and V copied to every query head, then SDPA",
        build=_repeated,
        extra_caches=lambda group: float(group),
    ),
    Formulation(
        name="k_transposed",
        about="two products, keys stored as (width, tokens)",
        build=_transposed,
        extra_caches=lambda group: 0.5,
    ),
    Formulation(
        name="v_transposed",
        about="two products, the cache on the left, values stored as (width, tokens)",
        build=_cache_left,
        extra_caches=lambda group: 0.5,
    ),
    Formulation(
        name="v_pages",
        about=f"the same with values in pages of {_PAGE} tokens, each (width, tokens)",
        build=_cache_left_pages,
        extra_caches=lambda group: 0.5,
    ),
    Formulation(name="split", about="products over parts of the context, merged", build=_split),
    Formulation(
        name="fused_split",
        about="torch's CPU kernel over parts of the context, merged",
        build=_fused_split,
    ),
    Formulation(
        name="compiled", about="torch.compile on the two products", build=_compiled, compiles=True
    ),
    Formulation(name="flex", about="FlexAttention, compiled", build=_flex, compiles=True),
)
"""Formulations on keys and values; those on a latent are in :mod:`formulations_mla`."""


def formulations(latent: bool) -> tuple[Formulation, ...]:
    """All decode formulations for a cache of keys and values, or for a latent."""
    if latent:
        from configurator.bench.formulations_mla import DECODE_MLA

        return DECODE_MLA
    return DECODE
