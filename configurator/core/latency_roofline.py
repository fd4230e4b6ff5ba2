"""Attention time on devices of a class nobody timed: a floor, bytes and FLOPs, shares by class.

Only good for ranking geometries on one device; the error may be a factor of 3 to 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.latency_decode import Parts, overlap
from configurator.core.latency_device import Machine
from configurator.core.latency_priors import Coefficients

__all__ = ["roofline_parts"]


def roofline_parts(
    m: Machine,
    c: Coefficients,
    columns: dict[str, Any],
    phase: str,
    latent: bool,
    causal: bool = True,
) -> Parts:
    """``floor + overlap(bytes / (share * bandwidth), FLOPs / (share * peak))``."""
    batch, context, query = columns["batch"], columns["context"], columns["query_len"]
    window = columns["window"]
    keys = np.where(window > 0, np.minimum(window, context), context)
    widths = columns["width"]
    if latent and phase == "decode":
        widths = columns["latent"] + columns["value"]
    if phase == "decode":
        pairs, reread = batch * keys * query, 1.0
    else:
        ends = np.minimum(window, query) if np.any(window > 0) else query
        triangle = query * (query + 1) / 2 if causal else query * query
        inside = np.where(window > 0, ends * (ends + 1) / 2 + (query - ends) * ends, triangle)
        pairs = batch * (inside + query * np.minimum(context - query, keys))
        reread = 2.0
    flops = 2 * columns["n_heads"] * widths * pairs
    moved = reread * batch * np.minimum(keys + 0 * query, context) * columns["kv_bytes"]
    moved = moved + 2 * query * batch * columns["n_heads"] * widths
    memory = moved / (c.get("roofline.share", 0.6) * m.bandwidth)
    compute = flops / (c.get("roofline.compute", 0.35) * m.peak) if m.peak else flops * np.nan
    floor = c.get("roofline.floor_us", 10.0) * 1e-6
    total = floor + overlap(memory, compute, 0.72)
    return Parts(floor, memory, 0.0, compute, 0.0, total)
