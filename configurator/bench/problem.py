"""One attention to time: queries, a cache, and as many copies of it as outgrow the chip's cache.

Shape suffixes: B batch, H query heads, K heads of the cache, G = H / K, T cached tokens, S query
tokens, E key width, F value width; for a latent R its rank, W = R + P with the rotary key, N the
key part without position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from configurator.attention.cache import allocate, held_bytes, torch_dtype
from configurator.attention.gqa import attend, mask
from configurator.core.dtypes import CacheType
from configurator.core.kinds import Attention

__all__ = ["Problem", "compute_dtype", "make", "needed_bytes", "slot_count"]

_ROTATION = 1.25  # working set over last-level cache
_MOST_SLOTS = 4096


@dataclass(slots=True, kw_only=True)
class Problem:
    """Inputs of one timed attention.

    ``slots`` are copies of the cache, keys and values (B, K, T, E and F) or a latent (B, 1, T, W).
    ``query`` is (B, H, S, E); for a latent it is absorbed already, (B, H, S, W), and the expanded
    form starts from ``raw_query`` (B, H, S, N + P), ``w_key`` (H, N, R) and ``w_value`` (H, F, R).
    """

    attention: Attention
    batch: int
    context: int
    queries: int
    causal: bool
    device: str
    compute: torch.dtype
    scale: float
    slots: list[tuple[Tensor, ...]]
    query: Tensor
    cache_bytes: int
    raw_query: Tensor | None = None
    w_key: Tensor | None = None
    w_value: Tensor | None = None

    @property
    def latent(self) -> bool:
        """Whether the cache is a latent."""
        return self.w_key is not None

    @property
    def group(self) -> int:
        """Query heads that share one head of the cache."""
        return self.query.shape[1] // self.slots[0][0].shape[1]

    @property
    def working_set_bytes(self) -> int:
        """Bytes that repeated calls rotate through."""
        return self.cache_bytes * len(self.slots)

    def reading(self, i: int) -> tuple[Tensor, ...]:
        """The cache of call ``i`` in the type that is computed with."""
        return tuple(t.to(self.compute) for t in self.slots[i % len(self.slots)])

    def value_space(self, out: Tensor) -> Tensor:
        """(B, H, S, F): what a form gives, with a latent result projected up to value heads."""
        if self.w_value is None or out.shape[-1] == self.w_value.shape[1]:
            return out.float()
        return torch.einsum("bhsr,hfr->bhsf", out.float(), self.w_value.float())

    def reference(self, most: int = 1 << 30) -> Tensor:
        """The first cache's answer in float32, by the readable module: (B, H, S, F).

        At most the last ``most`` queries, since all scores are held at once.
        """
        queries = min(self.queries, most)
        first = tuple(t.float() for t in self.slots[0])
        k, v = first if not self.latent else (first[0], first[0][..., : self._rank()])
        mask_ST = None
        if self.causal:
            positions = torch.arange(self.context, device=self.device)
            mask_ST = mask(positions[-queries:], positions)
        # attend() scales by its own width; the query carries the rest of the wanted scale.
        q = self.query[:, :, -queries:].float() * (self.scale * k.shape[-1] ** 0.5)
        out, _ = attend(q, k, v, mask_ST)
        return self.value_space(out)

    def _rank(self) -> int:
        return 0 if self.w_key is None else self.w_key.shape[2]


def compute_dtype(kv: CacheType) -> torch.dtype:
    """What the products run in: the cache's own type, bf16 for anything narrower."""
    plain = torch_dtype(kv.k.name)
    return plain if plain in (torch.float32, torch.float16, torch.bfloat16) else torch.bfloat16


def slot_count(slot_bytes: int, cache_bytes: int, room_bytes: int) -> int:
    """Copies of a cache that together outgrow the last-level cache, as far as memory allows."""
    wanted = max(2, -(-int(_ROTATION * cache_bytes) // slot_bytes))
    return max(1, min(wanted, _MOST_SLOTS, room_bytes // slot_bytes))


def needed_bytes(attention: Attention, kv: CacheType, batch: int, context: int) -> int:
    """Least memory of one problem: the cache, its float32 copy for the check, the scores."""
    cache = batch * context * int(attention.cache_bytes(kv))
    elements = batch * context * int(attention.cache_elements())
    return cache + 4 * elements + 8 * batch * context * int(attention.n_heads)


def make(
    attention: Attention,
    kv: CacheType,
    *,
    batch: int,
    context: int,
    queries: int = 1,
    causal: bool = False,
    device: str = "cpu",
    cache_bytes: int = 0,
    room_bytes: int = 1 << 62,
    seed: int = 0,
) -> Problem:
    """Allocate and fill a problem; the first cache is taken alone and its bytes are recorded.

    Args:
        attention: the geometry.
        kv: element types of the cache; block formats have no arithmetic in torch and are refused.
        batch: sequences.
        context: cached tokens.
        queries: new tokens of each sequence; they are the last of the context.
        causal: a query sees no later token (only matters with several queries).
        device: torch's name of the device.
        cache_bytes: its last-level cache; copies are made until they outgrow it.
        room_bytes: memory the copies may take.
        seed: of the random values.

    Raises:
        ValueError: an element type that torch cannot compute with.
    """
    if torch_dtype(kv.k.name) is None or torch_dtype(kv.v.name) is None:
        raise ValueError(f"torch has no arithmetic for a {kv.name} cache; its bytes are checked")
    generator = torch.Generator().manual_seed(seed)
    first = allocate(attention, kv, batch=batch, tokens=context, device=device)
    for tensor in first:
        _fill(tensor, generator)
    taken = held_bytes(first)
    count = slot_count(taken, cache_bytes, room_bytes)
    rest = [t.new_empty((count - 1, *t.shape)) for t in first]
    for pool, tensor in zip(rest, first, strict=True):
        pool.copy_(tensor)
    slots = [tuple(first), *(tuple(pool[i] for pool in rest) for i in range(count - 1))]
    compute = compute_dtype(kv)
    options: dict[str, Any] = {"device": device, "dtype": compute}

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(**options)

    heads, width = int(attention.n_heads), int(getattr(attention, "d_head", 0))
    raw = normal(batch, heads, queries, width)
    problem = Problem(
        attention=attention,
        batch=batch,
        context=context,
        queries=queries,
        causal=causal and queries > 1,
        device=device,
        compute=compute,
        scale=width**-0.5,
        slots=slots,
        query=raw,
        cache_bytes=taken,
    )
    rank = int(getattr(attention, "kv_lora_rank", 0))
    if rank and not getattr(attention, "rebuilt", False):
        nope = int(getattr(attention, "qk_nope_head_dim", 0))
        problem.raw_query = raw
        problem.w_key = normal(heads, nope, rank) * rank**-0.5
        problem.w_value = normal(heads, int(getattr(attention, "v_head_dim", 0)), rank)
        absorbed = torch.einsum("bhsn,hnr->bhsr", raw[..., :nope], problem.w_key)
        problem.query = torch.cat((absorbed, raw[..., nope:]), dim=-1)
    return problem


def _fill(tensor: Tensor, generator: torch.Generator) -> None:
    """Normal values, drawn once for a block and repeated: filling must not take longer than use."""
    flat = tensor.view(-1)
    block = min(flat.numel(), 1 << 20)
    values = torch.randn(block, generator=generator)
    if tensor.dtype == torch.int8:
        values = values.clamp(-4, 4) * 1.0
    values = values.to(tensor.dtype).to(tensor.device)
    for start in range(0, flat.numel(), block):
        piece = flat[start : start + block]
        piece.copy_(values[: piece.numel()])
