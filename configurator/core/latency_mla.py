"""Time of one layer's attention on a latent cache (MLA): absorbed decode, expanded prefill."""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.kernels import Kernel
from configurator.core.latency_decode import Parts
from configurator.core.latency_device import Machine
from configurator.core.latency_priors import Coefficients

__all__ = ["mla_decode_parts", "mla_prefill_parts"]


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
    narrow: bool,
    query_len: Any,
    warm: bool,
) -> Parts:
    """``latent`` is what one token caches, ``value`` the part that is summed as values."""
    us = 1e-6 / m.clock_ghz
    rows = np.ceil(n_heads * query_len / 64)
    padded = 64 * rows
    items = batch * rows
    tokens = batch * context
    stream = tokens * kv_bytes
    floor = c("mla.floor_us") * 1e-6 + c("mla.floor_us_ghz") * us
    if k.splits:
        extra = np.where((items < m.units) & (context > 64), c("mla.split_us_ghz") * us, 0.0)
        compute = 2 * padded * tokens * (latent + value) / (c("mla.compute") * m.peak)
        if k.name == "mla_sglang" and narrow:
            extra = extra + c("mla.convert_us_ghz") * us
            extra = extra + tokens * latent / (c("mla.convert_share") * m.bandwidth)
            compute = compute * c("mla.compute") / (c("mla.compute") / c.get("mla.compute.fp8", 1))
            stream = tokens * latent * 2
    else:
        extra = 0.0 * items
        waves = np.ceil(items / m.units)
        compute = waves * np.maximum(context - 64, 0) * c("mla.token_clocks") * us * 1e-3
        stream = tokens * latent * 2
    memory = stream / (c("mla.share") * m.bandwidth)
    if warm and m.cache_bytes:
        rate = c("decode.cache_bytes_per_clock") * m.units * m.clock_ghz * 1e9
        fill = np.minimum(stream / (m.cache_share * m.cache_bytes), 100.0) ** 16
        memory = memory + (stream / rate - memory) / (1 + fill)
    work = c("mla.item_us_ghz") * us * np.maximum(items / m.units, 1.0)
    three = memory + compute + work
    hidden = memory * compute + memory * work + compute * work
    total = floor + three - c("mla.overlap") * hidden / three + extra
    return Parts(floor, memory, work, compute, extra, total)


def mla_prefill_parts(
    k: Kernel,
    m: Machine,
    c: Coefficients,
    *,
    batch: Any,
    context: Any,
    n_heads: Any,
    width: Any,
    query_len: Any,
) -> Parts:
    """Keys and values are rebuilt per head: ``width`` is key plus value width of one head."""
    prefix = context - query_len
    pairs = batch * n_heads * query_len * ((query_len + 1) / 2 + prefix)
    compute = 2 * width * pairs / (c("mla_prefill.compute") * m.peak) / c("mla_prefill.fp8")
    items = batch * n_heads * np.ceil(query_len / 128)
    work = items * c("mla_prefill.item_us") * 1e-6 / m.units
    floor = c("mla_prefill.floor_us") * 1e-6
    return Parts(floor, 0.0, work, compute, 0.0, floor + compute + work)
