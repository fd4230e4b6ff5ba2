"""Ways to compute a prompt's attention: every query of the context, causal.

A latent cache is expanded to keys and values of every head before (that product belongs to the
projections), so MLA's prompt is plain attention whose values are narrower than its keys.

Shape suffixes as in :mod:`configurator.bench.problem`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.functional import scaled_dot_product_attention as sdpa

from configurator.attention.gqa import mask
from configurator.bench.formulations import Call, Formulation, Unsupported
from configurator.bench.problem import Problem
from configurator.core.kinds import Attention

__all__ = ["PREFILL", "expanded"]

_MOST_SCORES = 1 << 31


def expanded(attention: Attention) -> Attention:
    """What a prompt's attention works on: keys and values of every head, for a latent too."""
    if getattr(attention, "kv_lora_rank", 0) and not getattr(attention, "rebuilt", False):
        return replace(attention, rebuilt=True)  # type: ignore[type-var]
    return attention


def _causal(p: Problem) -> Call:
    grouped = p.group > 1

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        return sdpa(p.query, k, v, scale=p.scale, is_causal=True, enable_gqa=grouped)

    return call


def _repeated(p: Problem) -> Call:
    if p.group == 1:
        raise Unsupported("every query head has its own keys and values")

    def call(i: int) -> Tensor:
        k, v = (t.repeat_interleave(p.group, dim=1) for t in p.reading(i))
        return sdpa(p.query, k, v, scale=p.scale, is_causal=True)

    return call


def _padded(p: Problem) -> Call:
    """Values widened with zeros to the keys' width, so that the fused kernel takes them."""
    key, value = (t.shape[-1] for t in p.slots[0])
    if key <= value:
        raise Unsupported("values are as wide as keys")
    grouped = p.group > 1

    def call(i: int) -> Tensor:
        k, v = p.reading(i)
        wide = pad(v, (0, key - value))
        out = sdpa(p.query, k, wide, scale=p.scale, is_causal=True, enable_gqa=grouped)
        return out[..., :value]

    return call


def _products(p: Problem) -> Call:
    heads = p.query.shape[1]
    if p.batch * heads * p.queries * p.context > _MOST_SCORES // 4:
        raise Unsupported("the matrix of scores is larger than 2 GiB")
    positions = torch.arange(p.context, device=p.device)
    hidden_ST = ~mask(positions[-p.queries :], positions)
    kv_heads = p.slots[0][0].shape[1]
    q_BKGSE = p.query.view(p.batch, kv_heads, p.group, p.queries, -1)

    def call(i: int) -> Tensor:
        k, v = (t.unsqueeze(2) for t in p.reading(i))
        scores = torch.matmul(q_BKGSE, k.transpose(-1, -2)) * p.scale
        weights = scores.masked_fill_(hidden_ST, float("-inf")).softmax(dim=-1)
        return torch.matmul(weights, v).flatten(1, 2)

    return call


def _forced(backend: str) -> Any:
    def build(p: Problem) -> Call:
        if not p.device.startswith("cuda"):
            raise Unsupported("backends are chosen on CUDA only")
        from torch.nn.attention import SDPBackend, sdpa_kernel

        plain = _causal(p)
        chosen = getattr(SDPBackend, backend)

        def call(i: int) -> Tensor:
            with sdpa_kernel(chosen):
                return plain(i)

        return call

    return build


PREFILL: tuple[Formulation, ...] = (
    Formulation(name="sdpa", about="SDPA as it comes, causal", build=_causal),
    Formulation(
        name="padded",
        about="values padded to the keys' width, then SDPA",
        build=_padded,
        extra_caches=lambda group: 1.0,
    ),
    Formulation(
        name="repeated",
        about="K and V copied to every query head, then SDPA",
        build=_repeated,
        extra_caches=lambda group: float(group),
    ),
    Formulation(
        name="products",
        about="all scores at once, two products",
        build=_products,
        extra_caches=lambda group: 1.0,
    ),
    *(
        Formulation(
            name=f"sdpa_{name.split('_')[0].lower()}",
            about=f"SDPA with torch's {name} backend forced",
            build=_forced(name),
        )
        for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
    ),
)
