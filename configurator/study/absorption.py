"""What absorbing MLA's up-projections changes, in arithmetic and on a real model."""

from __future__ import annotations

from typing import Any

import torch

from configurator.attention.cache import Cache
from configurator.core.kinds.mla import Latent
from configurator.probe.model import TinyModel

__all__ = ["absorption", "equal_ways"]


def absorption(attention: Latent, *, context: int) -> tuple[str, ...]:
    """Sentences on one decoded token at ``context`` cached ones: arithmetic, cache, weights.

    Expanded, the step rebuilds keys and values of every cached token from its latent and then
    attends to narrow heads; absorbed, it attends to the latent itself with wide ones. The
    projections of the new token are the same products in another order and are left out.
    """
    rebuilt = context * float(attention.expansion_flops())
    narrow = context * float(attention.score_flops("prefill"))
    wide = context * float(attention.score_flops("decode"))
    per_head = attention.qk_nope_head_dim + attention.v_head_dim
    kept = context * (attention.n_heads * per_head + attention.qk_rope_head_dim)
    latent = context * attention.latent_width
    return (
        f"absorption at rank {attention.kv_lora_rank}: decoding one token at {context:,} cached "
        f"ones takes {rebuilt + narrow:.3g} FLOPs in a layer expanded (of which {rebuilt:.3g} to "
        f"rebuild keys and values) and {wide:.3g} absorbed, "
        f"{(rebuilt + narrow) / wide:.1f} times fewer, the new token's own projections left out",
        f"absorption leaves the cache ({latent:,} values) and the weights as they are; an "
        f"implementation that keeps the rebuilt keys and values instead would hold {kept:,}",
    )


def equal_ways(model: TinyModel, *, context: int = 64) -> str:
    """Decode a row token by token from the latent cache, both ways, and compare the outputs."""
    with torch.inference_mode():
        tokens_BS = torch.arange(context, device=model.embedding.weight.device)[None]
        x_BSD = model.embedding(tokens_BS)
        layer: Any = model.layers[0]
        x_BSD = layer.attention_norm(x_BSD)
        whole = layer.attention(x_BSD)
        stepped = {}
        for absorbed in (False, True):
            cache = Cache(
                layer.attention.geometry, batch=1, capacity=context, device=str(x_BSD.device)
            )
            parts = [
                layer.attention(x_BSD[:, i : i + 1], cache=cache, absorbed=absorbed)
                for i in range(context)
            ]
            stepped[absorbed] = torch.cat(parts, dim=1)
    scale = float(whole.abs().max())
    gaps = [float((stepped[way] - whole).abs().max()) / scale for way in (False, True)]
    rank = layer.attention.geometry.kv_lora_rank
    return (
        f"checked on an untrained layer of rank {rank}: decoding {context} tokens from the cached "
        f"latent, expanded and absorbed, gives the full forward to within {gaps[0]:.0e} and "
        f"{gaps[1]:.0e} of its largest value"
    )
