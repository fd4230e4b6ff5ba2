"""The order of candidates: the principles that decide, written down in one place.

Unlike quantities are compared in an order, each with its band, never summed. What decides, and
in which order, was tested against published models since 2024:

P0  vetoes: rules of severity error mask the grid. Where the memory binds, fewer KV heads come
    first, as far as several studies measured their loss; then the preferred geometry, if weights
    in 8 bits would make it fit (a dtype is changed later, a geometry is not); then whatever fits
    (``latency`` and ``memory`` take what fits as it is);
P1  MLA where expert parallelism takes tensor parallelism out of attention;
P2  otherwise GQA, not MHA: at a quarter of MHA's cache no measured loss (an encoder, which keeps
    no cache, stays with MHA);
P3  heads of 128, of 64 below a width of 1,024 or where 128 does not divide the width;
P4  heads as wide as the model in sum; twice that for sparse mixtures; MLA takes the power of two
    at or above d_model / 128;
P5  KV heads: the largest power of two whose cached width is at most half the model's, at most 8,
    at least the tensor parallelism;
P6  differences inside the evidence's or the prediction's error are ties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from configurator.budget import Frame
from configurator.core.case import Device, Workload
from configurator.core.quality import ERROR_NATS
from configurator.search import PROJECTIONS, Table

__all__ = ["ORDERS", "Principles", "order", "principles"]

# What each priority compares, first to last. Every name is a column of `criteria`.
ORDERS: dict[str, tuple[str, ...]] = {
    "balanced": ("memory", "loss", "projection", "d_head", "n_heads", "kv_heads", "cache"),
    "quality": ("memory", "loss", "projection", "d_head", "n_heads", "kv_by_width", "cache"),
    "latency": ("misfit", "loss", "d_head", "slower", "projection", "n_heads", "kv_heads"),
    "memory": ("misfit", "loss", "d_head", "bytes", "projection", "n_heads", "kv_heads"),
    "training": ("memory", "loss", "projection", "d_head", "n_heads", "kv_by_width", "cache"),
}
_MOST_KV_HEADS = 8  # the tensor parallelism of one node: beyond it KV heads only cost cache
_CACHED_WIDTH = 0.5  # the smallest cached width (elements over d_model) without a measured cost
# The smallest cached width that more than one study measured; below 0.1 everything is one study.
_MEASURED_WIDTH = 0.125
_NODE = 8
_NODE_SHARE = 0.9
_SPARSE = 10.0
_SPARSE_PARAMS = 20e9
_LATENT_CONTEXT = 8192
_TIE = 1.10  # predicted times closer than this do not rank (the error of a matched pair)
_LEAST_HEADS = 16  # at a width of 1,024 (Qwen3 0.6B, ERNIE 4.5 0.3B), not 8 of 128
_LEAST_HEADS_BELOW = 1536
_MOST_LATENT_HEADS = 128
_ODD_KV = 1.0  # another count than a power of two weighs as much as a factor of two


@dataclass(frozen=True, slots=True, kw_only=True)
class Principles:
    """What the principles prefer for one request; ``why`` holds the reason of each.

    ``d_head`` and ``n_heads`` are the preferred values; ``projection`` lists all four, best first.
    """

    projection: tuple[str, ...]
    d_head: int
    n_heads: int
    tensor_parallel: int
    d_model: int
    priority: str
    why: dict[str, str]

    @property
    def latent_heads(self) -> int:
        """P4 for MLA: the power of two at or above ``d_model / 128``, at most 128."""
        power = 1 << max(0, (self.d_model - 1) // 128).bit_length()
        return min(power, _MOST_LATENT_HEADS)

    def kv_heads(self, d_head: np.ndarray | int, cap: int = _MOST_KV_HEADS) -> np.ndarray:
        """P5 for each head width: 8 from 4,096 up at 128, 4 from 2,048, fewer below."""
        most = _CACHED_WIDTH / 2.0 * self.d_model / np.asarray(d_head, dtype=np.float64)
        power = 2.0 ** np.floor(np.log2(np.maximum(most, 2.0)) + 1e-9)
        return np.maximum(np.minimum(power, cap), min(self.tensor_parallel, _MOST_KV_HEADS))


def principles(frame: Frame, workload: Workload, device: Device | None) -> Principles:
    """P1 to P5 for one request."""
    why: dict[str, str] = {}
    context = int(workload.context)
    projection = _projection(frame, context, device, why)
    wide = frame.d_model > 1024 or (frame.d_model == 1024 and workload.allow_decoupled)
    d_head = 128 if wide and frame.d_model % 128 == 0 else 64
    why["d_head"] = (
        "heads of 128 have kernels everywhere and use the matrix units better in prefill than 64"
        if d_head == 128
        else f"at a width of {frame.d_model} heads of 64 keep enough heads"
        if not wide
        else f"128 does not divide a width of {frame.d_model}; 64 has kernels everywhere too"
    )
    heads = _query_heads(frame, d_head, workload, why)
    why["latent_heads"] = (
        "the power of two at or above d_model / 128; of teams at a width of 7,168 one took 128 "
        "(DeepSeek-V3) and one 64 (Kimi K2), which saw twice the heads lower the loss by 0.5 to "
        "1.2 % for 83 % more arithmetic at 128k tokens (arXiv 2507.20534)"
    )
    return Principles(
        projection=projection,
        d_head=d_head,
        n_heads=heads,
        tensor_parallel=int(workload.tensor_parallel),
        d_model=frame.d_model,
        priority=workload.priority,
        why=why,
    )


def _query_heads(frame: Frame, d_head: int, workload: Workload, why: dict[str, str]) -> int:
    """P4: heads that fill the width, or what published models do where that is awkward."""
    heads = frame.d_model / d_head
    why["n_heads"] = "query heads fill the model's width"
    if not workload.allow_decoupled:
        return max(1, round(heads))
    if 1024 <= frame.d_model < _LEAST_HEADS_BELOW and heads < _LEAST_HEADS:
        heads = _LEAST_HEADS
        why["n_heads"] = "16 at least from a width of 1,024 on, as current models of this width do"
    awkward = heads > _LEAST_HEADS and heads % 4
    ranks = int(workload.tensor_parallel)
    if heads != int(heads) or awkward or heads % ranks:
        step = max(8, ranks)
        heads = -(-heads // step) * step
        why["n_heads"] = f"rounded up to a multiple of {step}, so that heads split over ranks"
    if frame.active_params and frame.sparsity >= _SPARSE and frame.params >= _SPARSE_PARAMS:
        heads *= 2
        why["n_heads"] = (
            "a sparse mixture spends 2 to 3 % of its weights on attention: query heads twice "
            "as wide as the model are nearly free and are not cached"
        )
    return int(heads)


def _projection(
    frame: Frame, context: int, device: Device | None, why: dict[str, str]
) -> tuple[str, ...]:
    if frame.arch == "encoder":
        why["projection"] = "an encoder keeps no cache, so sharing KV heads would buy nothing"
        return ("MHA", "GQA", "MQA", "MLA")
    node = _NODE * device.memory_bytes if device else 0
    spread = 2 * frame.params > _NODE_SHARE * node if node else False
    if frame.active_params and context > _LATENT_CONTEXT and spread:
        why["projection"] = (
            "a mixture larger than one 8-device node is spread by experts with data-parallel "
            "attention, so MLA's latent is not copied on every rank"
        )
        return ("MLA", "GQA", "MQA", "MHA")
    why["projection"] = (
        "sharing KV heads down to a quarter of MHA's cache has no measured cost in loss, and every "
        "current "
        "kernel and server serves it"
    )
    return ("GQA", "MLA", "MQA", "MHA")


def criteria(table: Table, wish: Principles) -> dict[str, np.ndarray]:
    """One column per criterion, lower is better, each already rounded to its band."""
    decode = table.decode_s
    roomy = table.device_bytes <= table.room_bytes
    acceptable = table.admissible & roomy & (table.penalty_nats <= ERROR_NATS)
    best = np.nanmin(decode[acceptable], initial=np.inf) if acceptable.any() else np.inf
    known = np.isfinite(decode) & np.isfinite(best)
    slower = np.where(known, decode > _TIE * best, False)
    places = np.array([wish.projection.index(name) for name in PROJECTIONS])
    kv = np.maximum(table.n_kv_heads, 1).astype(np.float64)
    latent = table.projection == 3
    widths = table.d_head
    odd = np.where(np.exp2(np.round(np.log2(kv))) == kv, 0.0, _ODD_KV)
    queries = np.where(
        latent,
        table.n_heads / wish.latent_heads,
        table.n_heads * widths / (wish.n_heads * wish.d_head),
    )

    def distance(wanted: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.where(latent, 0.0, np.abs(np.log2(kv / wanted)) + odd)
        return found

    return {
        "misfit": table.device_bytes > table.room_bytes,
        "memory": _memory(table, wish),
        "loss": np.where(table.penalty_nats > ERROR_NATS, table.penalty_nats, 0.0),
        "slower": np.where(slower, decode, 0.0),
        "bytes": table.device_bytes,
        "projection": places[table.projection],
        "d_head": np.abs(np.log2(widths / wish.d_head)),
        "n_heads": np.abs(np.log2(queries)),
        "kv_heads": distance(wish.kv_heads(widths)),
        "kv_by_width": distance(wish.kv_heads(widths, 1024)),
        "cache": table.cache_bytes - table.kv_lora_rank,  # of two latents the proven rank first
    }


def _memory(table: Table, wish: Principles) -> np.ndarray:
    """P0's memory: 0 fits unstretched, 1 fits with 8-bit weights, 2 fits, 3 does not.

    Unstretched is the preferred projection (of those allowed), or GQA with fewer KV heads, down to
    the smallest cached width that several studies measured; not MQA, and not narrower heads.
    """
    usable = table.admissible & ~np.broadcast_to(table.excluded, table.admissible.shape)
    there = set(table.projection[usable].tolist())
    first = next((p for p in map(PROJECTIONS.index, wish.projection) if p in there), 1)
    latent = table.projection == 3
    wanted = wish.kv_heads(table.d_head)
    width = 2.0 * table.n_kv_heads * table.d_head / wish.d_model
    least = np.minimum(_MEASURED_WIDTH, width * wanted / np.maximum(table.n_kv_heads, 1))
    measured = latent | (width >= least * (1 - 1e-9))
    kinds = np.isin(table.projection, [first, PROJECTIONS.index("GQA")])
    wide = table.d_head >= min(wish.d_head, int(table.d_head[usable].max(initial=0)))
    fits = table.device_bytes <= table.room_bytes
    preferred = (table.projection == first) & (latent | (table.n_kv_heads >= wanted))
    light = preferred & (table.device_bytes <= table.light_room_bytes)
    found: np.ndarray = np.select(
        [fits & measured & kinds & wide, light, fits], [0.0, 1.0, 2.0], 3.0
    )
    return found


def order(table: Table, wish: Principles) -> np.ndarray:
    """Row numbers, best first; rows that break a masking rule, then excluded ones, come last."""
    found = criteria(table, wish)
    # A rank below four times the head width is extrapolated, so it never wins a tie.
    untested = (table.projection == 3) & (table.kv_lora_rank < 4 * table.d_head)
    excluded = np.broadcast_to(table.excluded, table.admissible.shape)
    keys = [excluded, ~table.admissible, *(found[name] for name in ORDERS[wish.priority])]
    keys.insert(4, untested)
    return np.lexsort(tuple(np.asarray(key, dtype=np.float64) for key in reversed(keys)))


def decide(table: Table, wish: Principles) -> int:
    """The winning row."""
    return int(order(table, wish)[0])
