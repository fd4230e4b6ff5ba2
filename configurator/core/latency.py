"""How long one layer's attention takes on a device, what bounds it, and how sure that is."""

from __future__ import annotations

import numpy as np

from configurator.core.case import Device
from configurator.core.dtypes import CacheType, cache_type
from configurator.core.errors import UsageError, show
from configurator.core.kernels import Kernel, choose
from configurator.core.kernels import kernel as named
from configurator.core.kinds import Attention
from configurator.core.latency_device import machine
from configurator.core.latency_error import Interval, error_factors
from configurator.core.latency_parts import Parts, bound, floor_share
from configurator.core.latency_run import Job, geometry_columns, run
from configurator.core.units import Count, Real

__all__ = ["Interval", "Parts", "bound", "floor_share", "interval", "parts", "predict_latency"]


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

    Decode: ``floor + overlap(flow, prologues) + split + copy``, with ``flow`` the slower of bytes
    over bandwidth and the work items' pace. Prefill: ``floor + causal tiles over the units +
    longest item + memory``. The projections around it, other layers and collectives are not in
    it (see :mod:`configurator.core.step`). Form and coefficients come from timed kernels
    published by ai-dynamo/aiconfigurator; ``benchmarks/fit_latency.py`` fits them.

    Args:
        attention: one geometry, or one whose fields are numpy columns; heads of one rank.
        device: where; fitted coefficients come with a catalog device, else priors apply.
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
        On a device of a vendor nobody timed only good for ranking (see :func:`interval`).

    Raises:
        UsageError: unknown phase, kernel or cache type, sizes below 1, or what is neither an
            attention nor a device.
    """
    if not hasattr(attention, "score_flops"):  # a protocol's isinstance would read every column
        raise UsageError(f"attention {show(attention)} is none; give a GroupedQuery or a Latent")
    if not isinstance(device, Device):
        raise UsageError(f"device {show(device)} is none; give device('h100-sxm')")
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


def _family(attention: Attention, device: Device, kv: CacheType, kernel: str | None) -> Kernel:
    latent = _latent(attention)
    family = choose(attention, device, kv.k.name) if kernel is None else named(kernel)
    if family.latent != latent:
        kind = "a latent cache" if latent else "keys and values per head"
        raise UsageError(f"kernel {family.name!r} does not read {kind}; leave kernel out")
    return family


def _latent(attention: Attention) -> bool:
    return hasattr(attention, "kv_lora_rank") and not getattr(attention, "rebuilt", False)


def _phase(phase: str) -> str:
    if phase not in ("decode", "prefill"):
        raise UsageError(f"phase {phase!r} is not known; write decode or prefill")
    return phase


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
    kv, latent = cache_type(kv_dtype), _latent(attention)
    family = _family(attention, device, kv, kernel)
    if _phase(phase) == "prefill":
        alone = np.asarray(query_len) == 1
        query_len = np.where(alone, context, query_len) if np.any(alone) else query_len
    given = {"batch": batch, "context": context, "query_len": query_len, "window": window}
    columns = {
        name: _column(name, value)
        for name, value in (geometry_columns(attention, kv, latent) | given).items()
    }
    for name in ("batch", "context", "query_len"):
        if not np.all((columns[name] >= 1) & np.isfinite(columns[name])):
            raise UsageError(f"{name} must be a number of at least 1")
    if not np.all(columns["window"] >= 0):
        raise UsageError("window must be 0 (none) or the tokens it keeps")
    shape = np.broadcast_shapes(*(c.shape for c in columns.values()))
    job = Job(
        device=device,
        machine=machine(device),
        kv=kv,
        phase=phase,
        latent=latent,
        warm=warm,
        causal=causal,
    )
    return _scaled(run(job, family, columns, shape), job, shape)


def _column(name: str, value: object) -> np.ndarray:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"{name} {show(value)} is no number and no column of numbers; give one such as 32768"
        ) from None


def _scaled(p: Parts, job: Job, shape: tuple[int, ...]) -> Parts:
    """The class model's times after the device's own scale and offset, in the asked shape."""
    own = job.device.coefficients
    scale = own.get(f"own.{job.phase}.scale", 1.0)
    if job.machine.peak != job.machine.peak:  # no rate for 16-bit arithmetic: unknown
        scale = float("nan")
    offset = own.get(f"own.{job.phase}.offset_s", 0.0)

    def shaped(value: Real, add: float = 0.0) -> Real:
        scaled = value if scale == 1.0 and add == 0.0 else value * scale + add
        if shape == ():
            return float(scaled)
        return np.broadcast_to(scaled, shape)

    return Parts(
        floor=shaped(p.floor, offset),
        memory=shaped(p.memory),
        items=shaped(p.items),
        compute=shaped(p.compute),
        extra=shaped(p.extra),
        total=shaped(p.total, offset),
    )


def interval(
    attention: Attention,
    device: Device,
    *,
    phase: str = "decode",
    batch: Count = 1,
    context: Count = 8192,
    kv_dtype: str | CacheType = "bf16",
    window: Count = 0,
    kernel: str | None = None,
) -> Interval:
    """Low and high factor for the prediction with the same arguments, and its confidence.

    Eight of ten measurements fall between them, by the validation that leaves the device out.
    """
    kv = cache_type(kv_dtype)
    return error_factors(
        attention,
        device,
        _family(attention, device, kv, kernel),
        kv,
        phase=_phase(phase),
        batch=batch,
        context=context,
        window=window,
    )
