"""Time of one layer's decode attention on keys and values per head (MHA, GQA, MQA).

``floor + overlap(flow, prologues) + split + copy``, where ``flow`` is the larger of bytes over
bandwidth and the pace of the work items, round by round over the device's units. Each mechanism
was found in timed kernels and survives leaving a whole device out of the fit; softmax never
bounds decode and is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.kernels import Kernel
from configurator.core.latency_device import Machine
from configurator.core.latency_parts import Parts, overlap, sharper
from configurator.core.latency_priors import Coefficients
from configurator.core.units import Real

__all__ = ["Parts", "decode_parts", "from_cache"]


def from_cache(m: Machine, rate: float, held: Real, moved: Real, memory: Real) -> Real:
    """Seconds saved where ``held`` bytes lie in the last-level cache: a sharp step at its size.

    The step is a power of 16, taken by squaring, of what the working set fills.
    """
    if not m.cache_bytes:
        return 0.0 * memory
    fill = np.minimum(held / (m.cache_share * m.cache_bytes), 16.0)
    for _ in range(4):
        fill = fill * fill
    return (memory - np.minimum(moved / rate, memory)) / (1 + fill)


def _sharper(first: Real, second_to_4: Real) -> Real:
    """:func:`sharper` of two, the second given as its fourth power: it is needed twice."""
    a = first * first
    return np.sqrt(np.sqrt(a * a + second_to_4))


def _flow(m: Machine, c: Coefficients, fits: float, work: Real, memory: Real, solo: Real) -> Real:
    """``work`` items in rounds of ``fits`` per unit: bytes or the items' own pace, the slower.

    A last round that is not full still takes as long as its items; a unit takes up as many as
    fit at once, so the last round is stacked too unless all items have a unit to themselves.
    """
    each = memory / work
    if fits == 1.0:
        rounds = np.floor(work / m.units)
        left = work - rounds * m.units
        own = solo * solo
        own = own * own
        last = np.minimum(left, 1.0) * _sharper(left * each, own)  # whole numbers: 0 or 1
        return rounds * _sharper(m.units * each, own) + last
    slots = m.units * fits
    rounds = np.floor(work / slots)
    left = work - rounds * slots
    stacked = (1 + (fits - 1) * c("decode.stack")) * solo
    pace = np.where((rounds == 0) & (left <= m.units), solo, stacked)
    last = np.where(left > 0, sharper(left * each, pace), 0.0)
    return rounds * sharper(slots * each, stacked) + last


def _tile_clocks(k: Kernel, m: Machine, c: Coefficients, width: Real) -> Real:
    """Clocks of one key in one work item: its values taken in, and the padded tile's products."""
    per_value = 1 / c("decode.item_rate")
    if not k.scalar:
        per_value += 2 * k.row_tile / (m.flops_per_unit_clock * c("decode.tile_compute"))
    clocks = width * per_value
    if c.narrow and k.wide_narrow < 1 << 20:
        clocks = clocks * np.where(width >= 2 * k.wide_narrow, c("decode.wide"), 1.0)
    return clocks


def _tiles(k: Kernel, width: Real, keys: Real, windowed: Any) -> tuple[Real, Real]:
    """Tiles of keys in one item, and keys in a tile; a window cuts its last tile."""
    small, middle, large = k.key_tiles
    size: Real = float(middle)
    if small != large:
        size = np.where(width <= 128, small, np.where(width <= 256, middle, large))
    tiles = np.ceil(keys / size)
    return (tiles if not k.splits else tiles + windowed), size


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
    group = n_heads / n_kv_heads
    windowed: Any = False  # told from a column, so that a grid without windows pays nothing
    if np.any(window > 0):
        windowed = (window > 0) & (window < context)
    keys = context if windowed is False else np.where(windowed, window, context)
    heads = n_kv_heads * np.ceil(group * query_len / k.row_tile) if k.folds else n_heads
    items = batch * heads
    tiles, tile = _tiles(k, width, keys, windowed)
    splits: Any = 1.0
    if k.splits:
        # Above 0.8 of the units, where nothing is split, this quotient is 1 or 0 by itself.
        splits = np.maximum(np.minimum(np.floor(m.units / items), tiles), 1.0)
    work = items * splits
    solo = np.ceil(tiles / splits) * (tile * _tile_clocks(k, m, c, width) / m.clock)
    if k.spreads_window and windowed is not False:
        scattered = np.minimum(items * np.ceil(context / 256), 4 * m.units)
        work = np.where(windowed, np.maximum(items, scattered), work)
        solo = np.where(windowed, 0.0, solo)

    stream = (batch * keys) * kv_bytes
    values = (query_len * batch) * (n_heads * width)
    moved = stream + 2.0 * values
    rate = c("decode.cache_rate") * m.units * m.clock
    memory = moved * (1.0 / (min(c("decode.share"), 0.98) * m.bandwidth))
    if warm:
        saved = from_cache(m, rate, moved, moved, memory)
        memory = memory - np.where(group > k.large_group, 0.0, saved)
    if not k.folds and not k.scalar:  # the group's other heads read the same keys again, from cache
        memory = memory + (group - 1) * stream / rate
    fits = max(1.0, m.shared_kib // k.smem_kib)
    flow = _flow(m, c, fits, work, memory, solo) if k.capped else memory

    waves = work / (m.units * fits)
    waves = np.where(waves < 4, np.ceil(waves), waves + 0.5)
    prologues = (c("decode.item_us_ghz") * m.us) * waves
    floor = (c("decode.floor_us") * 1e-6 + c("decode.floor_us_ghz") * m.us) * c("decode.floor")
    extra = _extra(k, m, c, splits, batch, n_heads, n_kv_heads, values, width, rate)
    total = floor + overlap(flow, prologues, c("decode.hidden")) + extra
    if not warm:
        total = np.maximum(total, moved * (1.0 / m.bandwidth))
    return Parts(floor, flow, prologues, 0.0, extra, total)


def _extra(
    k: Kernel,
    m: Machine,
    c: Coefficients,
    splits: Any,
    batch: Any,
    n_heads: Any,
    n_kv_heads: Any,
    values: Any,
    width: Any,
    rate: float,
) -> Real:
    """Second steps: the merge of a split context, copies, slow paths of some shapes."""
    extra: Real = 0.0
    if k.splits:
        once, each = c("decode.split_us_ghz") * m.us, c("decode.merge_us_ghz") * m.us
        partial = values * (4.0 / rate)  # of each split: fp32, written and read
        extra = np.minimum(splits - 1.0, 1.0) * (once + splits * (each + partial))
    if k.copies:
        copied = (batch > 1) & (n_kv_heads > 1)
        extra = extra + np.where(copied, c("decode.copy_us_ghz") * m.us, 0.0)
    if k.odd_d_head:
        odd = width == 2 * k.odd_d_head
        extra = extra + np.where(odd, c("decode.odd_us_ghz") * m.us, 0.0)
    if k.large_group < 1 << 20:
        large = (n_heads > k.large_group * n_kv_heads) & (width >= 256)
        extra = extra + np.where(large, c("decode.odd_us_ghz") * m.us, 0.0)
    return extra
