"""The order of candidates: the principles that decide, written down in one place.

Unlike quantities are compared in an order, each with its band, never summed. What decides, and
in which order, was tested against published models since 2024:

P0  vetoes: rules of severity error mask the grid; then what fits the memory comes first;
P1  MLA where expert parallelism takes tensor parallelism out of attention;
P2  otherwise GQA, not MHA: at a quarter of MHA's cache no measured loss (an encoder, which keeps
    no cache, stays with MHA);
P3  heads of 128, of 64 below a width of 1,024 or where 128 does not divide the width;
P4  heads as wide as the model in sum; twice that for sparse mixtures;
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
    "balanced": ("misfit", "loss", "projection", "d_head", "n_heads", "kv_heads", "cache"),
    "quality": ("misfit", "loss", "projection", "d_head", "n_heads", "kv_by_width", "cache"),
    "latency": ("misfit", "loss", "d_head", "slower", "projection", "n_heads", "kv_heads"),
    "memory": ("misfit", "loss", "d_head", "bytes", "projection", "n_heads", "kv_heads"),
    "training": ("misfit", "loss", "projection", "d_head", "n_heads", "kv_by_width", "cache"),
}
_MOST_KV_HEADS = 8  # the tensor parallelism of one node: beyond it KV heads only cost cache
_CACHED_WIDTH = 0.5  # the smallest cached width (elements over d_model) without a measured cost
_NODE = 8
_NODE_SHARE = 0.9
_SPARSE = 10.0
_SPARSE_PARAMS = 20e9
_LATENT_CONTEXT = 8192
_TIE = 1.10  # predicted times closer than this do not rank (the error of a matched pair)


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
    heads = frame.d_model / d_head
    why["n_heads"] = "query heads fill the model's width"
    if workload.allow_decoupled:
        if frame.d_model >= 1024:
            heads = max(heads, 16.0)
        if heads % 8 and heads > 8:
            heads = -(-heads // 8) * 8
            why["n_heads"] = "rounded up to a multiple of 8, so that heads split over ranks"
        if frame.active_params and frame.sparsity >= _SPARSE and frame.params >= _SPARSE_PARAMS:
            heads *= 2
            why["n_heads"] = (
                "a sparse mixture spends 2 to 3 % of its weights on attention: query heads twice "
                "as wide as the model are nearly free and are not cached"
            )
    return Principles(
        projection=projection,
        d_head=d_head,
        n_heads=max(1, round(heads)),
        tensor_parallel=int(workload.tensor_parallel),
        d_model=frame.d_model,
        priority=workload.priority,
        why=why,
    )


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
        "GQA at a quarter of MHA's cache has no measured cost in loss, and every current "
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
    return {
        "misfit": table.device_bytes > table.room_bytes,
        "loss": np.where(table.penalty_nats > ERROR_NATS, table.penalty_nats, 0.0),
        "slower": np.where(slower, decode, 0.0),
        "bytes": table.device_bytes,
        "projection": places[table.projection],
        "d_head": np.abs(np.log2(widths / wish.d_head)),
        "n_heads": np.abs(np.log2(table.n_heads * widths / (wish.n_heads * wish.d_head))),
        "kv_heads": np.where(latent, 0.0, np.abs(np.log2(kv / wish.kv_heads(widths)))),
        "kv_by_width": np.where(latent, 0.0, np.abs(np.log2(kv / wish.kv_heads(widths, 1024)))),
        "cache": table.cache_bytes - table.kv_lora_rank,  # of two latents the proven rank first
    }


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
