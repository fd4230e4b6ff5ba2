"""Time of one layer's decode attention on keys and values per head (MHA, GQA, MQA).

``floor + overlap(memory, items) + split + copy``: launches and prologues that scale with
1/clock; bytes over the reachable bandwidth; work items in waves over the device's units; the
merge of a split context. Softmax arithmetic never bounds it and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from configurator.core.kernels import Kernel
from configurator.core.latency_device import Machine
from configurator.core.latency_priors import Coefficients
from configurator.core.units import Real

__all__ = ["Parts", "decode_parts", "overlap"]


@dataclass(slots=True)
class Parts:
    """Seconds by cause. ``memory``, ``items`` and ``compute`` overlap in part; the rest adds."""

    floor: Real
    memory: Real
    items: Real
    compute: Real
    extra: Real
    total: Real


def overlap(first: Real, second: Real, share: float) -> Real:
    """Two times that hide each other in part: their sum less ``share`` of the harmonic term.

    Close to a norm of power 1.4 at ``share`` 0.72, monotonic in both, and without a power.
    """
    total = first + second
    return total - share * first * second / (total + 1e-30)


def decode_parts(
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
) -> Parts:
    """Columns of one kernel family: ``width`` is key plus value width, ``kv_bytes`` per token."""
    us = 1e-6 / m.clock_ghz
    group = n_heads / n_kv_heads
    windowed = (window > 0) & (window < context)
    keys = np.where(windowed, np.minimum(window, context), context)
    folded = np.ones(np.shape(group + 0 * windowed), bool)
    if not k.folds_single:
        folded = folded & (group > 1)
    if not k.folds_window:
        folded = folded & ~(window > 0)
    folded = folded & (group <= k.max_group)
    rows = np.ceil(group * query_len / k.row_tile)
    items = batch * np.where(folded, n_kv_heads * rows, n_heads)
    tiles = np.ceil(keys / 128) + windowed
    may_split = folded if k.splits else np.zeros_like(folded)
    splits: Any = np.where(
        may_split & (items < 0.8 * m.units),
        np.clip(np.floor(m.units / items), 1, tiles),
        1.0,
    )
    waves = np.where(
        (splits == 1) & (items < 4 * m.units),
        np.ceil(items / m.units),
        np.maximum(items * splits / m.units, 1.0),
    )
    stream = batch * keys * kv_bytes
    queries = 2.0 * query_len * batch * n_heads * width
    moved = stream + queries
    memory = moved / (c("decode.share") * m.bandwidth)
    cache_rate = c("decode.cache_bytes_per_clock") * m.units * m.clock_ghz * 1e9
    if warm and m.cache_bytes:
        fill = moved / (m.cache_share * m.cache_bytes)
        fill = np.minimum(fill, 100.0) ** 16
        memory = memory + (moved / cache_rate - memory) / (1 + fill)
    memory = memory + np.where(folded, 0.0, (group - 1) * stream / cache_rate)
    item = c("decode.item_us_ghz") * us
    rate: Any = c("decode.rate_bytes") if k.capped else 1e9
    full = items * splits >= m.units / 2
    free = np.maximum(rate, 3 * m.bandwidth / (m.units * m.clock_ghz * 1e9))
    rate = np.where(full, free, rate)
    each = np.ceil(tiles / splits) * 128 * 2 * width / rate / (m.clock_ghz * 1e9)
    work = waves * (item + each)
    floor = (c("decode.floor_us") * 1e-6 + c("decode.floor_us_ghz") * us) * c("decode.floor")
    extra = np.where(
        splits > 1, (c("decode.split_us_ghz") + c("decode.merge_us_ghz") * splits) * us, 0.0
    )
    if k.copies:
        copied = folded & (batch > 1) & (n_kv_heads > 1)
        extra = extra + np.where(copied, c("decode.copy_us_ghz") * us, 0.0)
    total = floor + overlap(memory, work, c("decode.overlap")) + extra
    return Parts(floor, memory, work, 0.0, extra, total)
