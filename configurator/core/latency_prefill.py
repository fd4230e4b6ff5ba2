"""Time of one layer's prefill attention: causal tiles over the units, items, and memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.kernels import Kernel
from configurator.core.latency_decode import Parts
from configurator.core.latency_device import Machine
from configurator.core.latency_priors import Coefficients
from configurator.core.units import Real

__all__ = ["prefill_parts"]


def _causal_tiles(n: Any, ratio: Any) -> Real:
    """Key tiles that ``n`` row tiles touch under a causal mask; ``ratio``: row over key tile."""
    few = np.maximum(1.0 / ratio - 1.0, 0.0) * ratio  # rounding up within a key tile
    return np.maximum(n * (n + 1) / 2 * ratio + n * few / 2, n)


def prefill_parts(
    k: Kernel,
    m: Machine,
    c: Coefficients,
    *,
    batch: Any,
    context: Any,
    n_heads: Any,
    n_kv_heads: Any,
    width: Any,
    kv_bytes: Any,
    query_len: Any,
    window: Any,
    warm: bool,
    causal: bool = True,
) -> Parts:
    """Columns of one kernel family; ``context`` is at least ``query_len`` (a cached prefix)."""
    us = 1e-6 / m.clock_ghz
    d_head = width / 2
    group = n_heads / n_kv_heads
    if k.name in ("flashinfer",):
        packed = np.ones(np.shape(group + query_len), bool)
        rows = query_len * group
        row_tile: Any = np.where(rows <= 16, 16.0, np.where(rows <= 64, 64.0, 128.0))
        key_tile: Any = 32.0
    else:
        row_tile = 64.0
        key_tile = np.where(d_head <= 64, 256.0, np.where(d_head <= 128, 128.0, 64.0))
        if k.name.startswith("fa3"):
            key_tile = 128.0
            packed = query_len < row_tile
        else:
            packed = query_len == 1
        rows = np.where(packed, query_len * group, query_len)
    heads = np.where(packed, n_kv_heads, n_heads)
    n = np.ceil(rows / row_tile)
    span = row_tile * query_len / rows  # query positions in one row tile
    prefix = context - query_len
    if causal:
        reach = np.where(window > 0, np.ceil(window / key_tile) + np.ceil(span / key_tile), np.inf)
        ratio = span / key_tile
        whole = (
            np.minimum(n, np.floor(reach / ratio)) if np.ndim(reach) or np.isfinite(reach) else n
        )
        key_tiles = _causal_tiles(whole, ratio) + (n - whole) * np.where(window > 0, reach, 0.0)
        old = np.where(window > 0, np.minimum(prefix, window), prefix)
        key_tiles = key_tiles + n * np.ceil(old / key_tile)
        longest = np.minimum(np.ceil(query_len / key_tile) + np.ceil(old / key_tile), reach)
    else:
        longest = np.ceil(context / key_tile)
        key_tiles = n * longest
    per_clock = m.clock_ghz * 1e9
    tile = (
        row_tile
        * key_tile
        * (
            2 * width * m.units / (c("prefill.compute") * m.peak)
            + c("prefill.exp") / (16 * per_clock)
        )
    )
    items = batch * heads * n
    compute = batch * heads * key_tiles * tile / m.units + longest * tile
    work = items * c("prefill.item_us_ghz") * us / m.units
    passes = c("prefill.kv_passes")
    moved = query_len * batch * (2 * n_heads * width + passes * n_kv_heads * width)
    moved = moved + batch * prefix * kv_bytes
    memory = moved / (c("prefill.share") * m.bandwidth)
    if warm and m.cache_bytes:
        rate = c("decode.cache_bytes_per_clock") * m.units * per_clock
        fill = np.minimum(moved / (m.cache_share * m.cache_bytes), 100.0) ** 16
        memory = memory + (moved / rate - memory) / (1 + fill)
    floor = (c("prefill.floor_us") * 1e-6 + c("prefill.floor_us_ghz") * us) * c("prefill.floor")
    return Parts(floor, memory, work, compute, 0.0, floor + compute + work + memory)
