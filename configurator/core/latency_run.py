"""Runs the forms over columns: what a geometry gives, which kernel takes which rows, in pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from configurator.core.case import Device
from configurator.core.dtypes import CacheType
from configurator.core.kernels import KERNELS, Kernel
from configurator.core.latency_decode import decode_parts
from configurator.core.latency_device import Machine
from configurator.core.latency_host import CALIBRATED, host_parts
from configurator.core.latency_mla import mla_decode_parts
from configurator.core.latency_parts import Parts
from configurator.core.latency_prefill import prefill_parts
from configurator.core.latency_priors import Coefficients
from configurator.core.latency_roofline import roofline_parts

__all__ = ["Job", "geometry_columns", "run"]

_PIECE = 1 << 14  # rows at a time: the temporaries then stay in the processor's cache
_NAMES = tuple(f.name for f in fields(Parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is the same for all rows."""

    device: Device
    machine: Machine
    kv: CacheType
    phase: str
    latent: bool
    warm: bool
    causal: bool

    def coefficients(self, *families: str) -> Coefficients:
        """The device's coefficients for a kernel's families and this cache type."""
        return Coefficients(self.device, families, self.kv.k.bytes_per_element < 2)


def geometry_columns(attention: Any, kv: CacheType, latent: bool) -> dict[str, Any]:
    """The figures of a geometry that the forms use."""
    heads = attention.kv_heads
    columns = {"n_heads": attention.n_heads, "width": attention.d_head + attention.v_width}
    if latent:
        return columns | {
            "latent": attention.latent_width,
            "value": attention.kv_lora_rank,
            "kv_bytes": kv.k.bytes_for(attention.latent_width),
        }
    per_head = kv.k.bytes_for(attention.d_head) + kv.v.bytes_for(attention.v_width)
    return columns | {"n_kv_heads": heads, "kv_bytes": heads * per_head}


def _one(job: Job, k: Kernel, columns: dict[str, Any]) -> Parts:
    """All rows by one kernel. MLA prefill rebuilds keys and values for every head."""
    m = job.machine
    plain = job.coefficients(*k.family)
    if plain.get(CALIBRATED, 0.0):
        return host_parts(plain.get, columns, job.kv, job.phase, job.latent, job.causal)
    if m.group == "other":
        return roofline_parts(m, plain, columns, job.phase, job.latent, job.causal)
    if job.phase == "decode":
        if not job.latent:
            return decode_parts(k, m, plain, warm=job.warm, **columns)
        unused = ("width", "window")
        wanted = {n: v for n, v in columns.items() if n not in unused}
        return mla_decode_parts(k, m, plain, warm=job.warm, **wanted)
    families = ("mla",) if job.latent else k.family
    c = job.coefficients(*families, *(("hopper",) if m.architecture == "sm_90" else ()))
    if job.latent:
        columns = {n: v for n, v in columns.items() if n not in ("latent", "value")}
        columns |= {"n_kv_heads": columns["n_heads"]}
    return prefill_parts(k, m, c, causal=job.causal, **columns)


def _dispatch(job: Job, k: Kernel, columns: dict[str, Any], shape: tuple[int, ...]) -> Parts:
    """Each row by the kernel that takes it."""
    if not k.otherwise or job.phase != "decode" or job.machine.group == "other":
        return _one(job, k, columns)
    takes = k.takes(columns["n_heads"] / columns["n_kv_heads"], columns["window"])
    if np.all(takes):
        return _one(job, k, columns)
    other = KERNELS[k.otherwise]
    if not np.any(takes):
        return _one(job, other, columns)
    if len(shape) > 1:
        return _flat(columns, shape, lambda flat, size: _dispatch(job, k, flat, (size,)))
    takes = np.broadcast_to(takes, shape)
    filled = Parts(*(np.empty(shape) for _ in _NAMES))
    for rows, chosen in ((takes, k), (~takes, other)):
        some = {n: c[rows] if c.size > 1 else c for n, c in columns.items()}
        _store(filled, rows, _one(job, chosen, some))
    return filled


def _store(filled: Parts, rows: Any, found: Parts) -> None:
    for name in _NAMES:
        getattr(filled, name)[rows] = getattr(found, name)


def _flat(
    columns: dict[str, Any], shape: tuple[int, ...], of: Callable[[dict[str, Any], int], Parts]
) -> Parts:
    """``of`` over the columns laid out one element after another, its figures in ``shape``."""
    flat = {
        n: np.broadcast_to(c, shape).ravel() if c.size > 1 else c.reshape(())
        for n, c in columns.items()
    }
    size = math.prod(shape)
    found = of(flat, size)
    laid = (np.broadcast_to(getattr(found, name), (size,)).reshape(shape) for name in _NAMES)
    return Parts(*laid)


def run(job: Job, k: Kernel, columns: dict[str, Any], shape: tuple[int, ...]) -> Parts:
    """The forms over columns (or numbers) that broadcast to ``shape``, a piece at a time."""
    size = math.prod(shape)
    if size <= _PIECE:
        return _dispatch(job, k, columns, shape)
    if len(shape) > 1:
        return _flat(columns, shape, lambda flat, n: run(job, k, flat, (n,)))
    filled = Parts(*(np.empty(size) for _ in _NAMES))
    for start in range(0, size, _PIECE):
        rows = slice(start, min(start + _PIECE, size))
        piece = {n: c if c.size == 1 else c[rows] for n, c in columns.items()}
        _store(filled, rows, _dispatch(job, k, piece, (rows.stop - start,)))
    return filled
