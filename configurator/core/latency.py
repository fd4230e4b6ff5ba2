"""How long one layer's attention takes on a device, what bounds it, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from configurator.core.case import Device
from configurator.core.dtypes import CacheType, cache_type
from configurator.core.errors import UsageError
from configurator.core.kernels import Kernel, choose
from configurator.core.kernels import kernel as named
from configurator.core.kinds import Attention
from configurator.core.latency_decode import Parts, decode_parts
from configurator.core.latency_device import Machine, machine
from configurator.core.latency_host import CALIBRATED, host_parts
from configurator.core.latency_mla import mla_decode_parts, mla_prefill_parts
from configurator.core.latency_prefill import prefill_parts
from configurator.core.latency_priors import Coefficients
from configurator.core.latency_roofline import roofline_parts
from configurator.core.units import Count, Real

__all__ = ["Interval", "bound", "floor_share", "interval", "parts", "predict_latency"]

_CHUNK = 1 << 15
_CAUSES = ("launch floor", "memory", "work items", "compute")


def predict_latency(
    attention: Attention,
    device: Device,
    *,
    phase: str = "decode",
    batch: Count = 1,
    context: Count = 8192,
    kv_dtype: str | CacheType = "bf16",
    query_len: Count = 1,
    window: Count = 0,
    kernel: str | None = None,
    warm: bool = False,
    causal: bool = True,
) -> Real:
    """Seconds that one layer's attention takes on one device: scores, softmax, weighted sum.

    Decode: ``floor + overlap(bytes / (share * bandwidth), waves of work items) + split + copy``.
    Prefill: ``floor + causal tiles / peak + items + memory``. The projections around it, the
    other layers and collectives are not in it (see :mod:`configurator.core.step`).

    Args:
        attention: one geometry, or one whose fields are numpy columns; heads of one rank.
        device: where; coefficients fitted to timed kernels come with a catalog device, else
            neutral priors apply.
        phase: ``decode`` (``query_len`` new tokens of each sequence) or ``prefill`` (a prompt of
            ``query_len`` tokens, or of ``context`` where ``query_len`` is 1).
        batch: sequences on this device.
        context: tokens attended to, new ones included.
        kv_dtype: type of the cache.
        query_len: new tokens per sequence.
        window: sliding window in tokens; 0 means none.
        kernel: a family of :data:`configurator.core.kernels.KERNELS`; the usual one when None.
        warm: the cache was just read and may lie in the last-level cache (a repeated benchmark);
            production is cold.
        causal: False for an encoder.

    Returns:
        Seconds, a number or a column; NaN where the device has no rate for 16-bit arithmetic.

    Raises:
        UsageError: unknown phase, kernel or cache type, or sizes below 1.
    """
    found = parts(
        attention,
        device,
        phase=phase,
        batch=batch,
        context=context,
        kv_dtype=kv_dtype,
        query_len=query_len,
        window=window,
        kernel=kernel,
        warm=warm,
        causal=causal,
    )
    return found.total


def parts(
    attention: Attention,
    device: Device,
    *,
    phase: str = "decode",
    batch: Count = 1,
    context: Count = 8192,
    kv_dtype: str | CacheType = "bf16",
    query_len: Count = 1,
    window: Count = 0,
    kernel: str | None = None,
    warm: bool = False,
    causal: bool = True,
) -> Parts:
    """The same prediction by cause, in seconds. Arguments as in :func:`predict_latency`."""
    if phase not in ("decode", "prefill"):
        raise UsageError(f"phase {phase!r} is not known; write decode or prefill")
    kv = cache_type(kv_dtype)
    latent = hasattr(attention, "kv_lora_rank") and not getattr(attention, "rebuilt", False)
    family = choose(attention, device, kv.k.name) if kernel is None else named(kernel)
    if family.latent != latent:
        kind = "a latent cache" if latent else "keys and values per head"
        raise UsageError(f"kernel {family.name!r} does not read {kind}; leave kernel out")
    if phase == "prefill":
        alone = np.asarray(query_len) == 1
        query_len = np.where(alone, context, query_len) if np.any(alone) else query_len
    fields = _fields(attention, kv, latent) | {
        "batch": batch,
        "context": context,
        "query_len": query_len,
        "window": window,
    }
    columns = {name: np.asarray(value, np.float64) for name, value in fields.items()}
    for name in ("batch", "context", "query_len"):
        if np.any(columns[name] < 1):
            raise UsageError(f"{name} must be at least 1")
    shape = np.broadcast_shapes(*(c.shape for c in columns.values()))
    size = int(np.prod(shape))
    small = machine(device, kv)
    read = Coefficients(device, family.name, kv.k.bytes_per_element < 2)
    if size <= _CHUNK or len(shape) != 1:
        result = _compute(columns, small, read, family, kv, phase, latent, warm, causal)
        return _finish(result, device, small, read, phase, shape)
    pieces = []
    for start in range(0, size, _CHUNK):
        piece = {n: c if c.size == 1 else c[start : start + _CHUNK] for n, c in columns.items()}
        pieces.append(_compute(piece, small, read, family, kv, phase, latent, warm, causal))
    names = ("floor", "memory", "items", "compute", "extra", "total")
    joined = Parts(
        *(
            np.concatenate(
                [
                    np.broadcast_to(getattr(p, n), (min(_CHUNK, size - i * _CHUNK),))
                    for i, p in enumerate(pieces)
                ]
            )
            for n in names
        )
    )
    return _finish(joined, device, small, read, phase, shape)


def _fields(attention: Any, kv: CacheType, latent: bool) -> dict[str, Any]:
    """The columns of a geometry that the forms use."""
    if latent:
        return {
            "n_heads": attention.n_heads,
            "latent": attention.latent_width,
            "value": attention.kv_lora_rank,
            "kv_bytes": kv.k.bytes_for(attention.latent_width),
            "width": attention.d_head + attention.v_width,
        }
    heads = attention.kv_heads
    return {
        "n_heads": attention.n_heads,
        "n_kv_heads": heads,
        "width": attention.d_head + attention.v_width,
        "kv_bytes": heads * (kv.k.bytes_for(attention.d_head) + kv.v.bytes_for(attention.v_width)),
    }


def _compute(
    columns: dict[str, Any],
    m: Machine,
    c: Coefficients,
    family: Kernel,
    kv: CacheType,
    phase: str,
    latent: bool,
    warm: bool,
    causal: bool,
) -> Parts:
    if c.get(CALIBRATED, 0.0):
        return host_parts(c.get, columns, kv, phase, latent, causal)
    if m.group == "other":
        return roofline_parts(m, c, columns, phase, latent, causal)
    if latent and phase == "decode":
        wanted = {n: v for n, v in columns.items() if n not in ("width", "window")}
        narrow = kv.k.bytes_per_element < 2
        return mla_decode_parts(family, m, c, narrow=narrow, warm=warm, **wanted)
    if latent:
        wanted = {n: columns[n] for n in ("batch", "context", "n_heads", "width", "query_len")}
        return mla_prefill_parts(family, m, c, **wanted)
    if phase == "decode":
        return decode_parts(family, m, c, warm=warm, **columns)
    return prefill_parts(family, m, c, warm=warm, causal=causal, **columns)


def _finish(
    p: Parts, device: Device, m: Machine, c: Coefficients, phase: str, shape: tuple[int, ...]
) -> Parts:
    scale = c.get(f"own.{phase}.scale", 1.0)
    offset = c.get(f"own.{phase}.offset_s", 0.0)
    known = 1.0 if m.peak else float("nan")

    def shaped(value: Real) -> Real:
        return float(value) if shape == () else np.broadcast_to(value, shape)

    return Parts(
        shaped(p.floor * scale * known + offset),
        shaped(p.memory * scale * known),
        shaped(p.items * scale * known),
        shaped(p.compute * scale * known),
        shaped(p.extra * scale * known),
        shaped(p.total * scale * known + offset),
    )


def floor_share(found: Parts) -> Real:
    """Share of the time that does not depend on the bytes read: launches, prologues, merges.

    Above about a half, KV heads change memory and not speed.
    """
    return 1 - (found.memory + found.compute) / (
        found.floor + found.memory + found.items + found.compute + found.extra
    )


def bound(found: Parts) -> Any:
    """What bounds a prediction: ``launch floor``, ``memory``, ``work items`` or ``compute``."""
    causes = (found.floor + found.extra, found.memory, found.items, found.compute)
    largest = np.argmax(np.stack(np.broadcast_arrays(*causes)), axis=0)
    names = np.array(_CAUSES)[largest]
    return str(names) if np.ndim(largest) == 0 else names


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Factors on a prediction between which eight of ten measurements fall, and why."""

    low: Real
    high: Real
    confidence: str


# Measured over predicted, 10th and 90th percentile with the device left out, by roofline time.
_DECODE = ((1e-6, 0.80, 1.30), (1e-5, 0.86, 1.45), (5e-5, 0.80, 1.40), (np.inf, 0.71, 1.50))


def interval(
    attention: Attention,
    device: Device,
    *,
    phase: str = "decode",
    batch: Count = 1,
    context: Count = 8192,
    kv_dtype: str | CacheType = "bf16",
    query_len: Count = 1,
    window: Count = 0,
    kernel: str | None = None,
) -> Interval:
    """Low and high factor for the prediction with the same arguments, and its confidence.

    ``confidence`` is ``measured`` (rows timed on this device), ``class`` (validated on other
    devices of its class) or ``unmeasured`` (a vendor nobody timed: a factor of 3 to 8).
    """
    c = Coefficients(device, "", False)
    own = c.get(f"own.{phase}.error", 0.0)
    if own:
        return Interval(low=1 / (1 + own), high=1 + own, confidence="measured")
    kv = cache_type(kv_dtype)
    m = machine(device, kv)
    if m.group == "other":
        return Interval(low=1 / 3, high=3.0, confidence="unmeasured")
    bytes_ = batch * context * attention.cache_bytes(kv)
    ideal = np.asarray(bytes_ / m.bandwidth)
    edges = np.array([row[0] for row in _DECODE])
    which = np.searchsorted(edges, ideal)
    low = np.array([row[1] for row in _DECODE])[which]
    high = np.array([row[2] for row in _DECODE])[which]
    family = choose(attention, device, kv.k.name) if kernel is None else named(kernel)
    if family.name in ("trtllm", "trtllm_gen", "unknown"):
        low, high = low**2, high**2
    if np.ndim(ideal) == 0:
        return Interval(low=float(low), high=float(high), confidence="class")
    return Interval(low=low, high=high, confidence="class")
