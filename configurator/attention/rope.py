"""Rotary position embedding: pairs of a head's values turn by an angle that grows with position.

Pair ``i`` of ``E / 2`` at position ``p`` turns by ``p * base^(-2i/E)``, so the product of a query
and a key depends on their distance alone (Su et al. 2021, arXiv:2104.09864, section 3.2.2). Two
layouts are in use: halves (Llama: value ``i`` pairs with value ``i + E/2``) and interleaved
(DeepSeek: ``2i`` with ``2i + 1``). Interleaved results are written as halves; queries and keys
alike, so their product is the same.

Shape suffixes: B batch, S new tokens, N heads, E width of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["rotate", "tables"]


def tables(positions_S: Tensor, width: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every pair's angle at each position: two tensors (S, width / 2), fp32.

    Raises ``ValueError`` for an odd width: values turn in pairs.
    """
    if width % 2:
        raise ValueError(f"rotary width {width} is odd; values turn in pairs, so use an even width")
    pairs = torch.arange(0, width, 2, device=positions_S.device, dtype=torch.float32)
    angles_SE = torch.outer(positions_S.float(), base ** (-pairs / width))
    return angles_SE.cos(), angles_SE.sin()


def rotate(x_BNSE: Tensor, turn: tuple[Tensor, Tensor], *, interleaved: bool = False) -> Tensor:
    """``x`` with each pair turned by its position's angle; ``turn`` comes from :func:`tables`."""
    cos_SE, sin_SE = (t.to(x_BNSE.dtype) for t in turn)
    if interleaved:
        a, b = x_BNSE[..., 0::2], x_BNSE[..., 1::2]
    else:
        a, b = x_BNSE.chunk(2, dim=-1)
    return torch.cat((a * cos_SE - b * sin_SE, b * cos_SE + a * sin_SE), dim=-1)
