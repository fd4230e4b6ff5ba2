"""Seconds of a whole model's step by cause: weights, attention, launches, collectives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from configurator.core.case import Case, Device
from configurator.core.columns import as_float, ceil_div, maximum, where
from configurator.core.cost import sequences_per_replica, touched_params
from configurator.core.dtypes import dtype
from configurator.core.kinds import Attention
from configurator.core.latency import parts
from configurator.core.latency_priors import Coefficients
from configurator.core.layers import LayerGroup, ModelShape
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
        return self.weights + self.attention + self.launches + self.collectives


def rank_attention(attention: Attention, ranks: Count) -> Any:
    """The heads that one of ``ranks`` tensor-parallel ranks computes: at least one of each."""
    if isinstance(ranks, int) and ranks == 1:
        return attention
    changes: dict[str, Any] = {"n_heads": maximum(ceil_div(attention.n_heads, ranks), 1)}
    if hasattr(attention, "n_kv_heads"):
        changes["n_kv_heads"] = maximum(attention.n_kv_heads // ranks, 1)
    return replace(attention, **changes)  # type: ignore[type-var]


def _all_reduce(device: Device, c: Coefficients, ranks: Count, bytes_: Real) -> Real:
    """A ring over ``ranks``: ``latency + 2 (n-1)/n * bytes / (share * link)``; 0 for one rank."""
    link = device.interconnect_bytes_per_s or float("nan")
    moved = 2.0 * (ranks - 1) / ranks * bytes_ / (c.get("step.link_share", 0.8) * link)
    hops = c.get("step.all_reduce_us", 10.0) * 1e-6
    return where(ranks > 1, hops + moved, 0.0)


def _gemm(case: Case, device: Device, c: Coefficients, tokens: Real, local: Real) -> Any:
    """Matrix products of ``local`` tokens per replica, ``tokens`` in all: (seconds, by compute)."""
    work, shape = case.workload, case.shape
    store = dtype(work.weight_dtype, "weight-dtype").bytes_per_element
    dense = touched_params(shape, 0.0)
    experts = touched_params(shape, tokens) - dense
    read = store * (dense / work.tensor_parallel + experts / device.count)
    active = _active(shape)
    peak, _ = device.rate(work.weight_dtype if store >= 1 else "bf16")
    flops = 2.0 * (active * local / work.tensor_parallel)
    memory = read / (c.get("step.share", 0.8) * device.bandwidth_bytes_per_s)
    compute = flops / (c.get("step.compute", 0.6) * peak) if peak else flops * float("nan")
    return maximum(memory, compute), compute > memory


def _active(shape: ModelShape) -> Real:
    total: Real = 0.0
    for g in shape.groups:
        total = total + as_float(g.count * g.active_layer_params())
    return total


def _decoding(shape: ModelShape) -> ModelShape:
    if shape.arch != "encoder-decoder":
        return shape
    return replace(shape, groups=tuple(g for g in shape.groups if g.label != "encoder"))


def _blocks(shape: ModelShape) -> Count:
    """Layers that launch kernels and, under tensor parallelism, end in collectives."""
    return sum(g.count for g in shape.groups if g.weights)


def _group_attention(
    case: Case, g: LayerGroup, device: Device, c: Coefficients, phase: str
) -> tuple[Real, Real]:
    """One layer's attention in a group: (seconds, the part that is floor)."""
    work = case.workload
    local = sequences_per_replica(case)
    kind = g.scope.kind
    if kind == "recurrent":
        passes = 2.0 * local * ceil_div(g.scope.size, work.tensor_parallel)
        floor = c.get("step.kernel_us", 3.0) * 1e-6
        return floor + passes / (c.get("step.share", 0.8) * device.bandwidth_bytes_per_s), floor
    if g.attention is None or (kind == "none" and phase == "decode"):
        return 0.0, 0.0
    context, window, causal = work.context, 0 * g.scope.size, True
    query: Count = 1
    if kind in ("window", "chunk"):
        window = g.scope.size
    elif kind == "compressed":
        context = maximum(work.context // g.scope.size, 1)
    elif kind == "cross":
        context = maximum(g.scope.size, 1)
    if phase == "prefill":
        query = context
        if kind == "none":
            encoder = g.label == "encoder" and case.shape.arch == "encoder-decoder"
            query = context = maximum(work.source_len, 1) if encoder else context
            causal = not (encoder or case.shape.arch == "encoder")
    found = parts(
        rank_attention(g.attention, work.tensor_parallel),
        device,
        phase=phase,
        batch=maximum(local, 1),
        context=context,
        kv_dtype=work.kv,
        query_len=query,
        window=window,
        causal=causal,
    )
    return found.total, found.floor + found.extra


def _attention(case: Case, shape: ModelShape, device: Device, c: Coefficients, phase: str) -> Any:
    total: Real = 0.0
    floor: Real = 0.0
    for g in shape.groups:
        each, fixed = _group_attention(case, g, device, c, phase)
        total, floor = total + g.count * each, floor + g.count * fixed
    return total, floor


def _step(case: Case, device: Device, phase: str) -> StepParts:
    c = Coefficients(device)
    shape = _decoding(case.shape) if phase == "decode" else case.shape
    inside = replace(case, shape=shape)
    work = case.workload
    each: Count = 1 if phase == "decode" else work.context
    local = as_float(sequences_per_replica(case)) * each
    seconds, by_compute = _gemm(inside, device, c, as_float(work.batch) * each, local)
    attention, floor = _attention(case, shape, device, c, phase)
    blocks = _blocks(shape)
    launches = blocks * c.get("step.layer_us", 15.0) * 1e-6 + c.get("step.host_us", 300.0) * 1e-6
    hidden = as_float(local) * shape.d_model * 2.0
    reduce_ = 2 * blocks * _all_reduce(device, c, work.tensor_parallel, hidden)
    return StepParts(
        weights=seconds,
        attention=attention,
        attention_floor=floor,
        launches=launches,
        collectives=reduce_,
        compute_bound=by_compute,
    )


def decode_step(case: Case, device: Device) -> StepParts:
    """One new token for every sequence of the batch."""
    return _step(case, device, "decode")


def prefill_step(case: Case, device: Device) -> StepParts:
    """A prompt of ``context`` tokens for every sequence of the batch, in one pass."""
    return _step(case, device, "prefill")
