"""Attention time on a machine that was calibrated: a floor, bytes and FLOPs, each measured there.

``calibrate`` fits these to its own timings of torch's best formulation and keeps them as
``Device.coefficients``: ``host.calibrated`` 1, and for each phase (``decode``, ``prefill``), kind
of cache (``kv``, ``latent``) and type (``fp32``, ``bf16``, ...) the keys ``floor_s``,
``bytes_per_s`` and ``flops_per_s``, such as ``host.decode.kv.bf16.bytes_per_s``. A rate of 0
means that the term was not seen. ``host.convert.fp8.elements_per_s`` is how fast a narrow cache
is widened, which torch does at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from configurator.core.dtypes import CacheType
from configurator.core.latency_decode import Parts
from configurator.core.units import Real

__all__ = ["CALIBRATED", "decode_work", "host_parts", "prefill_work"]

CALIBRATED = "host.calibrated"
_TYPES = ("bf16", "fp16", "fp32")


def decode_work(columns: dict[str, Any], latent: bool) -> tuple[Real, Real]:
    """Bytes and FLOPs of one decode step: the cache once; scores and sums of every query head."""
    context, window = columns["context"], columns["window"]
    keys = np.where(window > 0, np.minimum(window, context), context)
    widths = columns["latent"] + columns["value"] if latent else columns["width"]
    rows = columns["batch"] * keys
    moved = rows * columns["kv_bytes"]
    return moved, 2.0 * columns["n_heads"] * widths * rows * columns["query_len"]


def prefill_work(columns: dict[str, Any], causal: bool = True) -> tuple[Real, Real]:
    """Bytes of a prompt's keys and values in 16 bit, once, and its FLOPs (half if causal).

    The bytes stand for repacking: kernels bring keys and values into their own order first. A
    latent is expanded to every head before.
    """
    query, context, window = columns["query_len"], columns["context"], columns["window"]
    near = np.where(window > 0, np.minimum(window, query), query)
    inside = near * (near + 1) / 2 + (query - near) * near if causal else query * query
    earlier = np.maximum(context - query, 0)
    before = np.where(window > 0, np.minimum(window, earlier), earlier)
    pairs = columns["batch"] * (inside + query * before)
    width = columns["width"]
    return (
        2.0 * columns["batch"] * query * columns.get("n_kv_heads", columns["n_heads"]) * width,
        2.0 * columns["n_heads"] * width * pairs,
    )


def host_parts(
    read: Callable[[str, float], float],
    columns: dict[str, Any],
    kv: CacheType,
    phase: str,
    latent: bool,
    causal: bool = True,
) -> Parts:
    """``floor + bytes / rate + FLOPs / rate (+ values / conversion rate)``; a sum, no overlap.

    ``read(key, default)`` gives a coefficient. A type that was not calibrated takes the next one
    that was; NaN where the kind of cache was not calibrated at all.
    """
    kind = "latent" if latent else "kv"
    name = kv.k.name
    known = [t for t in (name, *_TYPES) if read(f"host.{phase}.{kind}.{t}.floor_s", -1.0) >= 0]
    if not known:
        unknown = columns["context"] * np.nan
        return Parts(unknown, unknown, unknown, unknown, unknown, unknown)
    stem = f"host.{phase}.{kind}.{known[0]}"
    work = decode_work(columns, latent) if phase == "decode" else prefill_work(columns, causal)
    rates = (read(f"{stem}.bytes_per_s", 0.0), read(f"{stem}.flops_per_s", 0.0))
    memory, compute = (w / rate if rate else 0.0 * w for w, rate in zip(work, rates, strict=True))
    floor = read(f"{stem}.floor_s", 0.0)
    widen = read(f"host.convert.{name}.elements_per_s", 0.0)
    extra: Real = 0.0
    if widen and phase == "decode" and known[0] != name:
        extra = work[0] / kv.k.bytes_per_element / widen
    return Parts(floor, memory, 0.0 * memory, compute, extra, floor + memory + compute + extra)
