"""What a shape costs: parameters, cache stored and read, memory. Numbers or columns.

Every function has one sentence of accounting: what is counted, what is ignored. Bytes are whole
numbers. FLOPs are in :mod:`configurator.core.flops`.
"""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Case
from configurator.core.columns import as_float, ceil_div, given, is_column, maximum, plus, where
from configurator.core.dtypes import CacheType, dtype
from configurator.core.layers import LayerGroup, ModelShape, once
from configurator.core.units import Count, Real, Truth

__all__ = [
    "Memory",
    "active_params",
    "cache_bytes",
    "cache_bytes_per_rank",
    "cache_bytes_per_token",
    "cache_bytes_per_token_past_window",
    "fits",
    "fixed_bytes_per_sequence",
    "max_batch",
    "max_context",
    "memory",
    "params_total",
    "sequence_bytes_per_rank",
    "touched_params",
]


def params_total(shape: ModelShape) -> Count:
    """All weights, tied ones once; no buffers, no extra prediction layers."""
    return once(shape, "params", lambda: _params_total(shape))


def _params_total(shape: ModelShape) -> Count:
    total = plus(_embedding_params(shape), shape.other_params)
    for g in shape.groups:
        total = plus(total, g.count * g.layer_params())
    return total


def active_params(shape: ModelShape) -> Count:
    """Weights one token goes through: the total less the routed experts it does not visit."""
    layers = sum(g.count * g.active_layer_params() for g in shape.groups)
    return layers + _embedding_params(shape) + shape.other_params


def _embedding_params(shape: ModelShape) -> Count:
    copies = 1 if shape.tied or not shape.head else 2
    return (copies * shape.vocab_size) * given(shape.d_embedding, shape.d_model)


def touched_params(shape: ModelShape, tokens: Real) -> Real:
    """Weights read by a step of ``tokens`` tokens: experts as expected under uniform routing.

    The input embedding is a look-up of a few rows and is left out; the output head is read.
    """
    total = as_float(shape.other_params + (shape.embedding_params if shape.head else 0))
    for g in shape.groups:
        per_layer = as_float(g.layer_params())
        ff = g.feed_forward
        if ff is not None and g.weights and ff.kind == "moe":
            per_layer = per_layer - ff.params() + ff.touched_params(tokens)
        total = total + g.count * per_layer
    return total


def expert_params(shape: ModelShape) -> Count:
    """Weights of routed experts, which expert parallelism spreads over all devices."""
    return sum(
        g.count * g.feed_forward.expert_params() for g in shape.groups if g.feed_forward is not None
    )


def _group_bytes_per_token(group: LayerGroup, kv: CacheType, ranks: Count) -> Count:
    return 0 if group.attention is None else group.attention.cache_bytes(kv, ranks)


def cache_bytes_per_token(case: Case, *, tensor_parallel: Count = 1) -> Count:
    """What one more token of one sequence adds while every layer still has room.

    The whole model, counted once; with ``tensor_parallel`` what one rank of that many adds.
    Cross-attention caches are fixed and not counted here.
    """
    return _per_token(case, ("full", "compressed", "window", "chunk"), tensor_parallel)


def cache_bytes_per_token_past_window(case: Case, *, tensor_parallel: Count = 1) -> Count:
    """The same once all windows are full: only layers that keep the whole context grow."""
    return _per_token(case, ("full", "compressed"), tensor_parallel)


def _per_token(case: Case, scopes: tuple[str, ...], ranks: Count) -> Count:
    total: Count = 0
    for g in case.shape.groups:
        if g.scope.kind in scopes:
            bytes_ = g.count * _group_bytes_per_token(g, case.workload.kv, ranks)
            total = total + (bytes_ // g.scope.size if g.scope.kind == "compressed" else bytes_)
    return total


def _sequence_bytes(case: Case, ranks: Count) -> Count:
    """One sequence at the workload's context, whole pages, fixed state included."""
    total: Count = 0
    for g in case.shape.groups:
        if g.scope.caches:
            tokens = g.cached_tokens(case.workload.context, case.workload.page_size)
            per_token = g.count * _group_bytes_per_token(g, case.workload.kv, ranks)
            total = plus(total, tokens * per_token)
        elif g.scope.kind == "recurrent":
            total = plus(total, g.count * ceil_div(g.scope.size, ranks))
    return total


def sequence_bytes_per_rank(case: Case) -> Count:
    """The cache one rank holds for one sequence at the workload's context."""
    ranks = case.workload.tensor_parallel
    return once(case, "sequence", lambda: _sequence_bytes(case, ranks))


def cache_bytes(case: Case) -> Count:
    """The logical cache of the whole model for the workload's batch and context, counted once."""
    return case.workload.batch * _sequence_bytes(case, 1)


def cache_bytes_per_rank(case: Case, *, tensor_parallel: Count | None = None) -> Count:
    """The cache one rank holds for the whole batch: its KV heads, copies and latents included."""
    ranks = case.workload.tensor_parallel if tensor_parallel is None else tensor_parallel
    return case.workload.batch * _sequence_bytes(case, ranks)


def fixed_bytes_per_sequence(case: Case) -> dict[str, Count]:
    """Bytes per sequence that do not grow: cross-attention caches and recurrent state."""
    found: dict[str, Count] = {}
    for g in case.shape.groups:
        if g.scope.kind == "cross":
            per_token = g.count * _group_bytes_per_token(g, case.workload.kv, 1)
            cross = per_token * g.cached_tokens(0, case.workload.page_size)
            found["cross_attention"] = found.get("cross_attention", 0) + cross
        elif g.scope.kind == "recurrent":
            found["recurrent_state"] = found.get("recurrent_state", 0) + g.count * g.scope.size
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes summed over the target's devices, copies included, and whether they fit on each."""

    weights_bytes: Count
    cache_bytes: Count
    reserve_bytes: Count
    capacity_bytes: Count
    fits: Truth


def split_params(shape: ModelShape) -> tuple[Count, Count]:
    """Weights that tensor parallelism splits, and those of experts, spread over all devices."""
    total, experts = params_total(shape), expert_params(shape)
    return (total - experts if is_column(experts) or experts else total), experts


def weights_bytes_per_device(case: Case, split: tuple[Count, Count] | None = None) -> Count:
    """Weights one device holds: experts spread over all, the rest split by tensor parallelism.

    Projections of copied KV heads and of latents are small and counted as if split. ``split``
    saves counting the shape again.
    """
    store = dtype(case.workload.weight_dtype, "weight-dtype")
    devices = case.device.count if case.device else 1
    rest, experts = split or split_params(case.shape)
    per_device = ceil_div(rest, case.workload.tensor_parallel)
    if is_column(experts) or experts:
        per_device = per_device + ceil_div(experts, devices)
    return store.bytes_for(per_device)


def _reserve_per_device(case: Case) -> int:
    device = case.device
    if device is None:
        return 0
    return round(device.memory_bytes * (1.0 - device.usable_share)) + device.overhead_bytes


def sequences_per_replica(case: Case) -> Count:
    """Sequences on the busiest replica: the batch shared among copies of the attention."""
    return ceil_div(case.workload.batch, case.replicas)


def fits(case: Case) -> Truth:
    """Whether weights, reserve and the busiest device's share of the cache fit on it.

    Raises ``ValueError`` without a device.
    """
    return sequence_bytes_per_rank(case) * sequences_per_replica(case) <= room_per_device(case)


def memory(case: Case) -> Memory:
    """Weights, cache and reserve against capacity; fits when the busiest device's share does.

    Raises ``ValueError`` without a device.
    """
    device = case.device
    if device is None:
        raise ValueError("memory needs a device")
    weights = weights_bytes_per_device(case)
    rank = sequence_bytes_per_rank(case)
    reserve = _reserve_per_device(case)
    used = weights + rank * sequences_per_replica(case) + reserve
    return Memory(
        weights_bytes=weights * device.count,
        cache_bytes=rank * case.workload.batch * case.workload.tensor_parallel,
        reserve_bytes=reserve * device.count,
        capacity_bytes=device.memory_bytes * device.count,
        fits=used <= device.memory_bytes,
    )


def room_per_device(case: Case, split: tuple[Count, Count] | None = None) -> Count:
    """Bytes of one device beside weights and reserve; below zero where the weights do not fit.

    Raises ``ValueError`` without a device.
    """
    if case.device is None:
        raise ValueError("room for a cache needs a device")
    free = case.device.memory_bytes - _reserve_per_device(case)
    return once(case, "room", lambda: free - weights_bytes_per_device(case, split))


def cache_budget_per_device(case: Case) -> Count:
    """Bytes of one device left for cache, after weights and reserve; never below zero."""
    return maximum(room_per_device(case), 0)


def max_batch(case: Case, budget_bytes: Count | None = None) -> Count:
    """Sequences of the workload's context that fit: whole ones, on all replicas together.

    A model without any cache is bounded by compute, not memory: the answer is then 0 x 'no limit',
    reported as -1.
    """
    budget = cache_budget_per_device(case) if budget_bytes is None else budget_bytes
    rank = _sequence_bytes(case, case.workload.tensor_parallel)
    each = where(rank > 0, budget // maximum(rank, 1), -1)
    return where(rank > 0, each * case.replicas, -1)


def max_context(case: Case, budget_bytes: int | None = None) -> int:
    """Longest context at which the workload's batch fits, in whole pages; one case only.

    Found exactly over the piecewise-linear cache (windows fill, fixed caches are paid first).
    -1 where no layer's cache grows without bound and the rest fits: memory sets no limit.
    """
    budget = int(cache_budget_per_device(case)) if budget_bytes is None else budget_bytes
    ranks = case.workload.tensor_parallel
    page = int(case.workload.page_size)
    sequences = int(sequences_per_replica(case))

    def needed(tokens: int) -> int:
        total: Count = 0
        for g in case.shape.groups:
            if g.scope.caches:
                held = g.cached_tokens(tokens, page)
                total += g.count * held * _group_bytes_per_token(g, case.workload.kv, ranks)
            elif g.scope.kind == "recurrent":
                total += g.count * ceil_div(g.scope.size, ranks)
        return int(sequences * total)

    if needed(page) > budget:
        return 0
    top = 1 << 50
    if needed(top) <= budget:
        return -1
    low, high = 1, top // page
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle * page) <= budget else (low, middle)
    return low * page
