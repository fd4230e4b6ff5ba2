"""Time of one layer's prefill attention: causal tiles over the units, items, and memory.

``floor + (tiles * tile time + items) / units + longest item + memory``. Tiles on the diagonal are
paid whole, and so are the ends of windows; that alone explains most of the loss at short prompts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.kernels import Kernel
from configurator.core.latency_decode import from_cache
from configurator.core.latency_device import Machine
from configurator.core.latency_parts import Parts
from configurator.core.latency_priors import Coefficients
from configurator.core.units import Real

__all__ = ["prefill_parts"]


def _row_tiles(
    k: Kernel, width: Real, query_len: Real, group: Real, window: Real
) -> tuple[Real, Real, Real, Any]:
    """Rows per KV or query head, rows and keys of a tile, and whether the group is packed."""
    if not k.prefill_rows:  # FlashInfer packs always, and chooses the tile by its rows
        rows = query_len * group
        by_rows = np.where(rows <= 16, 16.0, np.where(rows <= 64, 64.0, 128.0))
        return rows, by_rows, 32.0, np.ones(np.shape(rows), bool)
    tall = float(k.prefill_rows)
    small, middle, large = k.key_tiles
    keys: Real = float(middle)
    if small != large:
        keys = np.where(width <= 128, small, np.where(width <= 256, middle, large))
        packed = (query_len == 1) & (window == 0)
    else:
        packed = query_len < tall
    return np.where(packed, query_len * group, query_len), tall, keys, packed


def _causal(n: Real, ratio: Real) -> Real:
    """Key tiles that ``n`` row tiles touch under a causal mask; ``ratio``: row over key tile."""
    rounding = np.maximum(1.0 - ratio, 0.0) / 2  # mean of rounding up inside a key tile
    return np.maximum(n * ((n + 1) / 2 * ratio + rounding), n)


def _key_tiles(n: Real, span: Real, keys: Real, window: Real, old: Real, query: Real) -> Any:
    """Key tiles of all ``n`` row tiles of a head, and of the longest one."""
    ratio = span / keys
    reach = np.where(window > 0, np.ceil(window / keys) + np.ceil(ratio), 1e12)
    rising = np.minimum(n, np.floor(reach / ratio))
    own = _causal(rising, ratio) + np.where(window > 0, (n - rising) * reach, 0.0)
    before = np.ceil(np.where(window > 0, np.minimum(window, old), old) / keys)
    return own + n * before, np.minimum(np.ceil(query / keys) + before, reach)


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
    causal: bool = True,
) -> Parts:
    """Columns of one kernel family; ``context`` exceeds ``query_len`` by a cached prefix.

    Queries, keys and values were just written by the projections, so what fits the last-level
    cache comes from there, in production as in a benchmark; a prefix comes from memory.
    """
    rows, tall, keys, packed = _row_tiles(k, width, query_len, n_heads / n_kv_heads, window)
    heads = batch * np.where(packed, n_kv_heads, n_heads)
    n = np.ceil(rows / tall)
    prefix = np.maximum(context - query_len, 0.0)
    if causal:
        span = tall * query_len / rows
        tiles, longest = _key_tiles(n, span, keys, window, prefix, query_len)
    else:
        longest = np.ceil(context / keys)
        tiles = n * longest
    products = 2 * width / (c("prefill.compute") * m.flops_per_unit_clock)
    tile = tall * keys * (products + c("prefill.exp") / 16) / m.clock
    compute = heads * tiles * tile / m.units + longest * tile
    items = heads * n * (c("prefill.item_us_ghz") * m.us / m.units)

    queries, pairs = n_heads * width, n_kv_heads * width
    passes = c("prefill.query_passes") * queries + c("prefill.kv_passes") * pairs
    new = 2 * query_len * batch
    memory = new * passes / m.bandwidth
    rate = c("decode.cache_rate") * m.units * m.clock
    memory = memory - from_cache(m, rate, new * (queries + 2 * pairs), new * passes, memory)
    memory = memory + batch * prefix * kv_bytes / (c("decode.share") * m.bandwidth)
    floor = (c("prefill.floor_us") * 1e-6 + c("prefill.floor_us_ghz") * m.us) * c("prefill.floor")
    return Parts(floor, memory, items, compute, 0.0, floor + compute + items + memory)
