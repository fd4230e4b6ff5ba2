"""Seconds of a whole model's step by cause: weights, attention, launches, collectives.

``weights`` are the matrix products (weights read or FLOPs, the slower), ``attention`` the sum of
:mod:`configurator.core.latency` over layers and of recurrent states, ``launches`` what each layer
and each step costs before any byte moves, ``collectives`` the all-reduces of tensor parallelism
and the exchanges of experts. Norms and activations are inside the share of peak and the layer's
launches; the input embedding is a look-up and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configurator.core.case import Case, Device
from configurator.core.columns import as_float, ceil_div, maximum, plus, where
from configurator.core.cost import sequences_per_replica, touched_params
from configurator.core.dtypes import dtype
from configurator.core.kinds import Attention
from configurator.core.latency import parts
from configurator.core.latency_device import machine
from configurator.core.latency_parts import sharper
from configurator.core.latency_priors import Coefficients
from configurator.core.layers import LayerGroup, ModelShape, counted_once
from configurator.core.units import Count, Real

__all__ = ["StepParts", "decode_step", "prefill_step"]


@dataclass(slots=True, kw_only=True)
class StepParts:
    """Seconds of one step on the busiest device, by cause; ``total`` is their sum.

    ``attention_floor`` is the part of ``attention`` that no byte of cache changes.
    """

    weights: Real
    attention: Real
    attention_floor: Real
    launches: Real
    collectives: Real
    compute_bound: Any

    @property
    def total(self) -> Real:
        """The step."""
        return plus(self.weights + self.attention + self.launches, self.collectives)


def rank_attention(attention: Attention, ranks: Count) -> Any:
    """The heads of the fullest of ``ranks`` tensor-parallel ranks, which the others wait for."""
    if isinstance(ranks, int) and ranks == 1:
        return attention
    changes: dict[str, Any] = {"n_heads": ceil_div(attention.n_heads, ranks)}
    if hasattr(attention, "n_kv_heads"):
        changes["n_kv_heads"] = ceil_div(attention.n_kv_heads, ranks)
    return replace(attention, **changes)  # type: ignore[type-var]


def _collective(device: Device, c: Coefficients, ranks: Count, bytes_: Real) -> Real:
    """One step in which ``ranks`` devices each move ``bytes_``; 0 for one device.

    ``start + hop * log2(ranks) + bytes / (share * link)``; NaN where the link is unknown.
    """
    if not np.any(np.asarray(ranks) > 1):
        return 0.0
    link = device.interconnect_bytes_per_s or float("nan")
    hops = np.log2(np.maximum(ranks, 1))
    start = (c("step.reduce_us") + c("step.reduce_hop_us") * hops) * 1e-6
    return where(ranks > 1, start + bytes_ / (c("step.link_share") * link), 0.0)


def _collectives(case: Case, device: Device, c: Coefficients, tokens: Real) -> Real:
    """Two all-reduces a layer over the ranks; two exchanges a layer where replicas share experts.

    A ring moves ``2 (n-1)/n`` times the hidden state of ``tokens``; an exchange sends each token
    to its experts and back, in 16 bit.
    """
    ranks = case.workload.tensor_parallel
    if isinstance(ranks, int) and ranks == 1 and device.count == 1:
        return 0.0
    ring = 2.0 * (ranks - 1) / ranks * tokens * case.shape.d_model * 2.0
    total: Real = 0.0
    for g in case.shape.groups:
        if not g.weights:
            continue
        total = total + g.count * 2 * _collective(device, c, ranks, ring)
        ff = g.feed_forward
        if ff is not None and ff.kind == "moe" and device.count > 1:
            sent = tokens * ff.experts_per_token * case.shape.d_model * 2.0
            exchange = 2 * _collective(device, c, device.count, sent)
            total = total + g.count * where(case.replicas > 1, exchange, 0.0)
    return total


def _products(case: Case, device: Device, c: Coefficients, tokens: Real, local: Real) -> Any:
    """Matrix products of ``local`` tokens a replica, ``tokens`` in all: (seconds, FLOPs bound it).

    Weights below 8 bit are widened to 16 and multiplied there.
    """
    work, shape = case.workload, case.shape
    store = dtype(work.weight_dtype, "weight-dtype")
    width = store.bytes_per_element
    dense = touched_params(shape, 0.0)
    read = dense / work.tensor_parallel
    if any(g.feed_forward is not None and g.feed_forward.kind == "moe" for g in shape.groups):
        read = read + (touched_params(shape, tokens) - dense) / device.count
    read = width * read
    rate, used = device.rate(store.name if width >= 1 and store.block == 1 else "bf16")
    share = c("step.share") * c.get(f"step.share.{store.name}", 1.0)
    active: Real = 0.0
    for g in shape.groups:
        active = plus(active, as_float(g.count * g.active_layer_params()))
    flops = (2.0 * active / work.tensor_parallel) * local
    memory = read / (share * device.bandwidth_bytes_per_s)
    reached = c("step.compute") * c.get(f"step.compute.{used}", 1.0) * rate
    compute = flops / reached if reached else flops * float("nan")
    return sharper(memory, compute), compute > memory


def _decoding(shape: ModelShape) -> ModelShape:
    """The layers that run for each generated token: all but an encoder's."""
    if shape.arch != "encoder-decoder":
        return shape
    return replace(shape, groups=tuple(g for g in shape.groups if g.label != "encoder"))


def _state(case: Case, g: LayerGroup, device: Device, c: Coefficients) -> tuple[Real, Real]:
    """A recurrent layer: its state read and written once per step; (seconds, floor)."""
    size = ceil_div(g.scope.size, case.workload.tensor_parallel)
    moved = 2.0 * sequences_per_replica(case) * size
    floor = c("decode.floor_us") * 1e-6
    return floor + moved / (c("step.share") * device.bandwidth_bytes_per_s), floor


def _group_attention(
    case: Case, g: LayerGroup, device: Device, c: Coefficients, phase: str
) -> tuple[Real, Real]:
    """One layer's attention in a group: (seconds, the part that is floor).

    A shared layer reads another's cache: the whole context, or its own window where it has one.
    """
    work, kind = case.workload, g.scope.kind
    if kind == "recurrent":
        return _state(case, g, device, c)
    if g.attention is None or (kind == "none" and phase == "decode"):
        return 0.0, 0.0
    context, window, causal = work.context, 0 * g.scope.size, True
    if kind in ("window", "chunk", "shared"):
        window = g.scope.size
    elif kind == "compressed":
        context = maximum(work.context // g.scope.size, 1)
    elif kind == "cross":
        context = maximum(g.scope.size, 1)
    query: Count = 1
    if phase == "prefill":
        query = maximum(work.context, 1)
        context = maximum(context, 1) if kind == "cross" else query
        causal = kind != "cross"
        if kind == "none":
            encoder = g.label == "encoder" and case.shape.arch == "encoder-decoder"
            query = context = maximum(work.source_len, 1) if encoder else query
            causal = not (encoder or case.shape.arch == "encoder")
    found = parts(
        rank_attention(g.attention, work.tensor_parallel),
        device,
        phase=phase,
        batch=maximum(sequences_per_replica(case), 1),
        context=context,
        kv_dtype=work.kv,
        query_len=query,
        window=window,
        causal=causal,
    )
    return found.total, found.floor + found.extra


def _attention(case: Case, device: Device, c: Coefficients, phase: str) -> tuple[Real, Real]:
    total: Real = 0.0
    floor: Real = 0.0
    for g in case.shape.groups:
        each, fixed = _group_attention(case, g, device, c, phase)
        total, floor = plus(total, g.count * each), plus(floor, g.count * fixed)
    return total, floor


def _launches(case: Case, device: Device, c: Coefficients) -> Real:
    """Small kernels of each layer, scaled by the clock like every launch, and the host's step."""
    clock = machine(device).clock / 1e9
    layer = c("step.layer_us")
    if clock:
        layer = layer * (0.35 + 0.65 * c("step.layer_clock_ghz") / clock)
    layers: Count = 0
    for g in case.shape.groups:
        layers = plus(layers, g.count if g.weights else 0)
    host = c("step.host_us") + c("step.sequence_us") * sequences_per_replica(case)
    return (layers * layer + host) * 1e-6


def _step(case: Case, device: Device, phase: str) -> StepParts:
    c = Coefficients(device)
    inside = replace(case, shape=_decoding(case.shape)) if phase == "decode" else case
    work = case.workload
    each: Count = 1 if phase == "decode" else work.context
    local = as_float(sequences_per_replica(case)) * each
    with counted_once():
        seconds, by_compute = _products(inside, device, c, as_float(work.batch) * each, local)
    attention, floor = _attention(inside, device, c, phase)
    return StepParts(
        weights=seconds,
        attention=attention,
        attention_floor=floor,
        launches=_launches(inside, device, c),
        collectives=_collectives(inside, device, c, local),
        compute_bound=by_compute,
    )


def decode_step(case: Case, device: Device) -> StepParts:
    """One new token for every sequence of the batch."""
    return _step(case, device, "decode")


def prefill_step(case: Case, device: Device) -> StepParts:
    """A prompt of ``context`` tokens for every sequence of the batch, in one pass."""
    return _step(case, device, "prefill")
