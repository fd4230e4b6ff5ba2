"""Scale and offset of the class model for one device, from a few rows timed on it.

A handful of timings cannot fit forty coefficients, but they can say by how much the whole model
is off on this card and what its launches cost: ``measured = offset + scale * predicted``. The
result goes into ``Device.coefficients``: ``own.decode.scale``, ``own.decode.offset_s`` and
``own.decode.error`` (for prefill likewise), the last from leaving each row out in turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from configurator.core.case import Device
from configurator.core.dtypes import CacheType
from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.latency import predict_latency
from configurator.core.units import Count, Real

__all__ = ["refit", "scale_and_offset"]

_FEWEST = 6
_STEPS = 48


def scale_and_offset(predicted_s: Real, measured_s: Real) -> tuple[float, float]:
    """The scale and offset that leave the smallest mean absolute log error.

    For each candidate offset the best scale is the exponential of a median; candidates run from
    0 to the fastest measured row, and below 0 as far as predictions stay positive.
    """
    p, t = np.asarray(predicted_s, np.float64), np.asarray(measured_s, np.float64)
    best = (np.inf, 1.0, 0.0)
    fastest, slack = float(t.min()), float(p.min())
    for offset in np.concatenate([
        np.linspace(-0.9 * slack, 0.0, _STEPS, endpoint=False),
        np.linspace(0.0, 0.98 * fastest, _STEPS),
    ]):  # fmt: skip
        net = t - offset
        scale = float(np.exp(np.median(np.log(net / p))))
        whole = offset + scale * p
        if np.any(whole <= 0):
            continue
        loss = float(np.mean(np.abs(np.log(whole / t))))
        if loss < best[0] - 1e-12:
            best = (loss, scale, float(offset))
    return best[1], best[2]


def _without(device: Device, phase: str) -> Device:
    """The device before any refit of this phase."""
    kept = {k: v for k, v in device.coefficients.items() if not k.startswith(f"own.{phase}.")}
    return replace(device, coefficients=kept)


def refit(
    attention: Attention,
    device: Device,
    measured_s: Any,
    *,
    phase: str = "decode",
    batch: Count = 1,
    context: Count = 8192,
    kv_dtype: str | CacheType = "bf16",
    query_len: Count = 1,
    window: Count = 0,
    kernel: str | None = None,
    warm: bool = True,
) -> dict[str, float]:
    """Coefficients of a device from rows timed on it; 24 are a good number, 6 the fewest.

    Arguments are columns as in :func:`predict_latency`, with the seconds that were measured.
    ``own.<phase>.error`` is the 80th percentile of |predicted / measured - 1| when each row is
    predicted by a fit to the others. Where that is no better than the class model as it is, the
    scale stays 1 and the offset 0.

    Raises:
        UsageError: fewer than 6 rows, times that are not above zero, or a device for which
            nothing can be predicted (it has no rate for 16-bit arithmetic).
    """
    measured = np.asarray(measured_s, np.float64).ravel()
    if measured.size < _FEWEST:
        raise UsageError(f"{measured.size} timed rows are too few; time at least {_FEWEST}")
    if not np.all(measured > 0):
        raise UsageError("measured times must be above zero seconds")
    predicted = predict_latency(
        attention,
        _without(device, phase),
        phase=phase,
        batch=batch,
        context=context,
        kv_dtype=kv_dtype,
        query_len=query_len,
        window=window,
        kernel=kernel,
        warm=warm,
    )
    predicted = np.broadcast_to(np.asarray(predicted, np.float64).ravel(), measured.shape)
    if not np.all(np.isfinite(predicted)):
        raise UsageError(f"{device.name} has no 16-bit rate, so there is no model to refit")
    scale, offset = scale_and_offset(predicted, measured)
    errors = []
    for i in range(measured.size):
        others = np.arange(measured.size) != i
        s, o = scale_and_offset(predicted[others], measured[others])
        errors.append(abs((o + s * predicted[i]) / measured[i] - 1))
    plain = np.abs(predicted / measured - 1)
    if np.mean(plain) <= np.mean(errors):
        scale, offset, errors = 1.0, 0.0, plain.tolist()
    return {
        f"own.{phase}.scale": scale,
        f"own.{phase}.offset_s": offset,
        f"own.{phase}.error": float(np.quantile(errors, 0.8)),
    }
