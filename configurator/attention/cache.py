"""Preallocated caches: every byte is taken at the start, so what is held is what was planned.

A layer keeps the whole context, a sliding window (a ring: the newest token overwrites the oldest;
order does not matter to attention, since keys carry their rotary position), or a fixed source for
cross-attention. :func:`allocate` takes the room alone, for any element type and scope.

Shape suffixes: B batch, K heads of the cache, T cached tokens, S new tokens, W width of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from configurator.core.dtypes import CacheType, DType
from configurator.core.kinds import Attention
from configurator.core.kinds.shared_kv import SharedKeyValue
from configurator.core.layers import LayerGroup

__all__ = ["Cache", "allocate", "allocate_group", "held_bytes", "layout", "room", "torch_dtype"]

_PLAIN = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}


def torch_dtype(name: str) -> torch.dtype | None:
    """Torch's type for one of our names; None for block formats, which torch has no type for."""
    return _PLAIN.get(name)


def layout(attention: Attention) -> list[tuple[int, int]]:
    """Heads and width of each tensor that one layer caches: (K, E) and (K, F), or (1, latent).

    >>> from configurator.core.shapes import geometry
    >>> layout(geometry(d_model=512, n_heads=8, n_kv_heads=2))
    [(2, 64), (2, 64)]
    >>> layout(geometry(d_model=512, n_heads=8, kv_lora_rank=128, qk_rope_head_dim=32))
    [(1, 160)]
    """
    rank = int(getattr(attention, "kv_lora_rank", 0))
    index = int(getattr(attention, "index_head_dim", 0))
    if isinstance(attention, SharedKeyValue):
        return [(1, int(attention.d_head) + index)]
    if rank and not getattr(attention, "rebuilt", False):
        return [(1, rank + int(getattr(attention, "qk_rope_head_dim", 0)) + index)]
    heads = int(attention.kv_heads)
    widths = (int(getattr(attention, "d_head", 0)), int(getattr(attention, "v_width", 0)))
    return [*((heads, w) for w in widths), *([(1, index)] if index else [])]


def room(
    batch: int, heads: int, tokens: int, width: int, kind: DType, device: str = "cpu"
) -> Tensor:
    """Uninitialised memory for ``batch x heads x tokens`` rows of ``width`` values.

    Plain types give (B, K, T, W). A block format gives bytes (B, T, blocks, block bytes): a
    token's heads lie in one row as in llama.cpp, and a block once begun is whole.
    """
    plain = torch_dtype(kind.name)
    if plain is not None:
        return torch.empty(batch, heads, tokens, width, dtype=plain, device=device)
    blocks = -(-heads * width // kind.block)
    shape = (batch, tokens, blocks, kind.block_bytes)
    return torch.empty(shape, dtype=torch.uint8, device=device)


def held_bytes(tensors: Sequence[Tensor]) -> int:
    """Bytes of the storages behind ``tensors``, each counted once: what was really allocated."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors if t.numel()}
    return sum(s.nbytes() for s in storages.values())


def allocate(
    attention: Attention, kv: CacheType, *, batch: int, tokens: int, device: str = "cpu"
) -> list[Tensor]:
    """One layer's cache for ``tokens`` tokens: keys and values, or a latent.

    Shapes come from the geometry, bytes from the allocator, so comparing :func:`held_bytes` with
    the core's prediction checks one against the other.
    """
    kinds = (kv.k, kv.v, kv.k)
    return [
        room(batch, heads, tokens, width, kind, device)
        for (heads, width), kind in zip(layout(attention), kinds, strict=False)
    ]


def allocate_group(
    group: LayerGroup,
    kv: CacheType,
    *,
    batch: int,
    context: int,
    page: int = 1,
    device: str = "cpu",
) -> list[Tensor]:
    """What one layer of ``group`` keeps with ``context`` tokens seen: its scope decides.

    Recurrent layers hold their state as bytes; shared layers and encoders hold nothing.
    """
    if group.scope.kind == "recurrent":
        return [torch.empty(batch, int(group.scope.size), dtype=torch.uint8, device=device)]
    if group.attention is None or not group.scope.caches:
        return []
    tokens = int(group.cached_tokens(context, page))
    return allocate(group.attention, kv, batch=batch, tokens=tokens, device=device)


class Cache:
    """One layer's keys and values, or its latent: room for ``capacity`` tokens taken at once.

    Args:
        attention: one of the core's geometries; it decides the tensors.
        batch: sequences.
        capacity: tokens.
        window: keep only the last ``window`` tokens, in a ring that never fills up; 0 keeps all.
        dtype: element type stored; reading gives it back as it is.
        device: where.
    """

    def __init__(
        self,
        attention: Attention,
        *,
        batch: int,
        capacity: int,
        window: int = 0,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
    ) -> None:
        self.room = min(capacity, window) if window else capacity
        self.window = window
        self.length = 0
        self.tensors = [
            torch.empty(batch, heads, self.room, width, dtype=dtype, device=device)
            for heads, width in layout(attention)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes held, whatever the length."""
        return held_bytes(self.tensors)

    def update(self, *new_BKSW: Tensor) -> tuple[list[Tensor], Tensor]:
        """Add new tokens; give what to attend to, (B, K, T, W) each, and every token's position.

        Raises ``ValueError`` where a cache without a window is full.
        """
        count, start = new_BKSW[0].shape[2], self.length
        if not self.window and start + count > self.room:
            raise ValueError(
                f"the cache holds {self.room} tokens; {start} + {count} do not fit: "
                "allocate it with a larger capacity"
            )
        device = new_BKSW[0].device
        positions_S = torch.arange(start, start + count, device=device)
        # A prompt that wraps round the ring overwrites keys which its own first queries need.
        wraps = count > 1 and start + count > self.room
        before = [t.clone() for t in self.held()] if wraps else []
        before_T = self.positions(device)
        slots = positions_S[-self.room :] % self.room
        for tensor, new in zip(self.tensors, new_BKSW, strict=True):
            tensor[:, :, slots] = new[:, :, -self.room :].to(tensor.dtype)
        self.length = start + count
        if not wraps:
            return self.held(), self.positions(device)
        both = [
            torch.cat((old, new.to(old.dtype)), dim=2)
            for old, new in zip(before, new_BKSW, strict=True)
        ]
        return both, torch.cat((before_T, positions_S))

    def held(self) -> list[Tensor]:
        """The tokens held now, in the order of their slots."""
        return [t[:, :, : min(self.length, self.room)] for t in self.tensors]

    def positions(self, device: torch.device | str = "cpu") -> Tensor:
        """Position of the token in each held slot: the newest is ``length - 1``."""
        slots = torch.arange(min(self.length, self.room), device=device)
        newest = self.length - 1
        return newest - (newest - slots) % self.room if self.length else slots
