"""Attention time on devices of a class nobody timed: a floor, bytes and FLOPs, shares by class.

Only good for ranking geometries on one device; the time itself may be off by a factor of 3 to 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from configurator.core.latency_device import Machine
from configurator.core.latency_parts import Parts, overlap
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
        pairs, passes = batch * keys * query, 1.0
    else:
        near = np.where(window > 0, np.minimum(window, query), query)
        inside = near * (near + 1) / 2 + (query - near) * near if causal else query * query
        earlier = np.minimum(np.maximum(context - query, 0), keys)
        pairs, passes = batch * (inside + query * earlier), 2.0  # written, and read again
    flops = 2 * columns["n_heads"] * widths * pairs
    moved = passes * batch * keys * columns["kv_bytes"]
    moved = moved + 2 * query * batch * columns["n_heads"] * widths
    memory = moved / (c("roofline.share") * m.bandwidth)
    compute = flops / (c("roofline.compute") * m.peak)
    floor = c("roofline.floor_us") * 1e-6
    total = floor + overlap(memory, compute, 0.72)
    return Parts(floor, memory, 0.0 * memory, compute, 0.0, total)
