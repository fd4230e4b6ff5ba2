"""Time of one layer's decode attention on a latent cache (MLA), with absorbed arithmetic.

Every query head reads the same latent, so heads are padded to 64 rows of a tile, and the padded
products may bound it: at 128 heads they do on Hopper.
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

__all__ = ["mla_decode_parts"]

_ROWS = 64.0


def mla_decode_parts(
    k: Kernel,
    m: Machine,
    c: Coefficients,
    *,
    batch: Any,
    context: Any,
    n_heads: Any,
    latent: Any,
    value: Any,
    kv_bytes: Any,
    query_len: Any,
    warm: bool,
) -> Parts:
    """``latent`` is what one token caches, ``value`` the part that is summed as values.

    A kernel that splits takes bytes or padded products, the slower; one that does not takes a
    fixed number of clocks for each key of its item.
    """
    rows = np.ceil(n_heads * query_len / _ROWS)
    items = batch * rows
    tokens = batch * context
    stream = tokens * (kv_bytes if k.splits and not k.converts else 2 * latent)
    products = 2 * _ROWS * (latent + value)  # FLOPs of one key in one item
    extra: Real = 0.0
    if k.splits:
        compute = rows * tokens * products / (c("mla.compute") * m.peak)
        few = (items < m.units) & (context > _ROWS)
        extra = np.where(few, c("mla.split_us_ghz") * m.us, 0.0)
    else:
        clocks = c("mla.token_clocks") + c("mla.token_compute") * products / m.flops_per_unit_clock
        waves = np.ceil(items / m.units)
        compute = waves * np.maximum(context - _ROWS, 0.0) * clocks / m.clock
    if k.converts and c.narrow:
        slow = c("mla.convert_share") * m.bandwidth
        extra = extra + c("mla.convert_us_ghz") * m.us + tokens * kv_bytes / slow
    memory = stream / (min(c("mla.share"), 1.0) * m.bandwidth)
    if warm:
        rate = c("decode.cache_rate") * m.units * m.clock
        memory = memory - from_cache(m, rate, stream, stream, memory)
    work = c("mla.item_us_ghz") * m.us * np.maximum(items / m.units, 1.0)
    floor = c("mla.floor_us") * 1e-6 + c("mla.floor_us_ghz") * m.us
    three = memory + compute + work
    hidden = memory * compute + memory * work + compute * work
    total = floor + three - c("mla.hidden") * hidden / three + extra
    if not warm:
        total = np.maximum(total, stream / m.bandwidth)
    return Parts(floor, memory, work, compute, extra, total)
