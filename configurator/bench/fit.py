"""From timings to coefficients: seconds as a floor, bytes over a rate and FLOPs over a rate.

Relative errors count, since a prediction is right when its ratio is; no coefficient is negative,
since none of these costs is; and single wild samples have little weight. Pure arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configurator.bench.points import Point, attention_from
from configurator.core.dtypes import cache_type
from configurator.core.latency_host import CALIBRATED, decode_work, prefill_work

__all__ = ["Sample", "coefficients", "kendall_tau", "least_squares", "sample"]

Array = NDArray[np.float64]
_ROUNDS = 8
_USUAL = 0.05  # relative errors up to this count as usual, larger ones lose weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One timed point: what had to be read and computed, and how long it took."""

    phase: str
    kind: str
    dtype: str
    bytes_moved: float
    flops: float
    seconds: float


def sample(point: Point, seconds: float) -> Sample:
    """A timed point as the model sees it."""
    attention: Any = attention_from(point.attention)
    kv = cache_type(point.kv_dtype)
    latent = point.attention["kind"] == "mla" and not attention.rebuilt
    columns: dict[str, Any] = {
        "batch": point.batch,
        "context": point.context,
        "window": point.window,
        "query_len": 1 if point.phase == "decode" else point.context,
        "n_heads": attention.n_heads,
        "width": attention.d_head + attention.v_width,
        "kv_bytes": attention.cache_bytes(kv),
    }
    if latent:
        columns |= {"latent": attention.latent_width, "value": attention.kv_lora_rank}
    else:
        columns["n_kv_heads"] = attention.kv_heads
    moved, flops = (
        decode_work(columns, latent) if point.phase == "decode" else prefill_work(columns)
    )
    return Sample(
        phase=point.phase,
        kind="latent" if latent else "kv",
        dtype=kv.k.name,
        bytes_moved=float(moved),
        flops=float(flops),
        seconds=seconds,
    )


def least_squares(features: Array, target: Array) -> Array:
    """Coefficients, none negative, with the least squared relative error; every subset is tried.

    Raises ``ValueError`` for a target that is not above zero.
    """
    if not len(target) or np.any(target <= 0):
        raise ValueError("timings must be above zero")
    a = features / target[:, None]
    ones = np.ones(len(target))
    best, found = np.inf, np.zeros(features.shape[1])
    scale = np.abs(a).max(axis=0) + 1e-300
    for size in range(1, min(features.shape[1], len(target)) + 1):
        for columns in map(list, combinations(range(features.shape[1]), size)):
            part = a[:, columns] / scale[columns]
            x, *_ = np.linalg.lstsq(part, ones, rcond=None)
            error = float(np.sum((part @ x - ones) ** 2))
            if np.all(x >= 0) and error < best - 1e-12:
                best, found = error, np.zeros(features.shape[1])
                found[columns] = x / scale[columns]
    return found


def _robust(features: Array, target: Array) -> Array:
    """The same with weights: a point far off its prediction is likely to be a disturbed one."""
    weights = np.ones(len(target))
    found = least_squares(features, target)
    for _ in range(_ROUNDS):
        off = np.abs(np.log(np.maximum(features @ found, 1e-12) / target))
        weights = 1 / np.sqrt(np.maximum(off, _USUAL) / _USUAL)
        # Scaling a row and its target alike leaves its ratio; the weight goes on the ratio.
        found = _weighted(features, target, weights)
    return found


def _weighted(features: Array, target: Array, weights: Array) -> Array:
    repeats = np.maximum(1, np.round(weights * 20)).astype(int)
    return least_squares(np.repeat(features, repeats, axis=0), np.repeat(target, repeats))


def coefficients(samples: Sequence[Sample]) -> dict[str, float]:
    """Keys of ``Device.coefficients`` for every phase, kind and type that has samples."""
    found = {CALIBRATED: 1.0}
    for phase, kind, dtype in sorted({(s.phase, s.kind, s.dtype) for s in samples}):
        own = [s for s in samples if (s.phase, s.kind, s.dtype) == (phase, kind, dtype)]
        features = np.array([[1.0, s.bytes_moved, s.flops] for s in own])
        floor, per_byte, per_flop = _robust(features, np.array([s.seconds for s in own]))
        stem = f"host.{phase}.{kind}.{dtype}"
        found[f"{stem}.floor_s"] = float(floor)
        if per_byte:
            found[f"{stem}.bytes_per_s"] = float(1 / per_byte)
        if per_flop:
            found[f"{stem}.flops_per_s"] = float(1 / per_flop)
    return found


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-b: pairs in the same order less pairs in the other, ties allowed for.

    >>> kendall_tau([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    a, b = np.asarray(first, float), np.asarray(second, float)
    upper = np.triu_indices(len(a), 1)
    x, y = (np.sign(v[:, None] - v[None, :])[upper] for v in (a, b))
    total = np.sqrt(float(np.sum(x != 0)) * float(np.sum(y != 0)))
    return float(np.sum(x * y) / total) if total else float("nan")
