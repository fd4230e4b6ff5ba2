"""What a shape costs: parameters, cache stored and read, memory, FLOPs. Numbers or columns.

Every function has one sentence of accounting: what is counted, what is ignored. Bytes are whole
numbers; FLOPs are float64, since int64 columns overflow silently. A multiply-add is 2 FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Case
from configurator.core.columns import as_float, ceil_div, maximum, minimum, where
from configurator.core.dtypes import CacheType, dtype
from configurator.core.layers import LayerGroup, ModelShape
from configurator.core.units import Count, Real, Truth

__all__ = [
    "Memory",
    "active_params",
    "cache_bytes",
    "cache_bytes_per_rank",
    "cache_bytes_per_token",
    "cache_bytes_per_token_past_window",
    "decode_flops",
    "fixed_bytes_per_sequence",
    "max_batch",
    "max_context",
    "memory",
    "params_total",
    "prefill_flops",
    "touched_params",
]


def params_total(shape: ModelShape) -> Count:
    """All weights, tied ones once; no buffers, no extra prediction layers."""
    layers = sum(g.count * g.layer_params() for g in shape.groups)
    return layers + _embedding_params(shape) + shape.other_params


def active_params(shape: ModelShape) -> Count:
    """Weights one token goes through: the total less the routed experts it does not visit."""
    layers = sum(g.count * g.active_layer_params() for g in shape.groups)
    return layers + _embedding_params(shape) + shape.other_params


def _embedding_params(shape: ModelShape) -> Count:
    copies = 1 if shape.tied or not shape.head else 2
    return copies * shape.embedding_params


def touched_params(shape: ModelShape, tokens: Real) -> Real:
    """Weights read by a step of ``tokens`` tokens: experts as expected under uniform routing.

    The input embedding is a look-up of a few rows and is left out; the output head is read.
    """
    total = as_float(shape.other_params + shape.embedding_params * shape.head)
    for g in shape.groups:
        per_layer = as_float(g.layer_params())
        if g.feed_forward is not None and g.weights:
            ff = g.feed_forward
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
            total = total + g.count * tokens * _group_bytes_per_token(g, case.workload.kv, ranks)
        elif g.scope.kind == "recurrent":
            total = total + g.count * ceil_div(g.scope.size, ranks)
    return total


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


def weights_bytes_per_device(case: Case) -> Count:
    """Weights one device holds: experts spread over all, the rest split by tensor parallelism.

    Projections of copied KV heads and of latents are small and counted as if split.
    """
    store = dtype(case.workload.weight_dtype, "weight-dtype")
    devices = case.device.count if case.device else 1
    experts = expert_params(case.shape)
    rest = params_total(case.shape) - experts
    per_device = ceil_div(rest, case.workload.tensor_parallel) + ceil_div(experts, devices)
    return store.bytes_for(per_device)


def _reserve_per_device(case: Case) -> int:
    device = case.device
    if device is None:
        return 0
    return round(device.memory_bytes * (1.0 - device.usable_share)) + device.overhead_bytes


def sequences_per_replica(case: Case) -> Count:
    """Sequences on the busiest replica: the batch shared among copies of the attention."""
    return ceil_div(case.workload.batch, case.replicas)


def memory(case: Case) -> Memory:
    """Weights, cache and reserve against capacity; fits when the busiest device's share does.

    Raises ``ValueError`` without a device.
    """
    device = case.device
    if device is None:
        raise ValueError("memory needs a device")
    weights = weights_bytes_per_device(case)
    rank = _sequence_bytes(case, case.workload.tensor_parallel)
    reserve = _reserve_per_device(case)
    used = weights + rank * sequences_per_replica(case) + reserve
    return Memory(
        weights_bytes=weights * device.count,
        cache_bytes=rank * case.workload.batch * case.workload.tensor_parallel,
        reserve_bytes=reserve * device.count,
        capacity_bytes=device.memory_bytes * device.count,
        fits=used <= device.memory_bytes,
    )


def cache_budget_per_device(case: Case) -> Count:
    """Bytes of one device left for cache, after weights and reserve; never below zero."""
    if case.device is None:
        raise ValueError("a cache budget needs a device")
    left = case.device.memory_bytes - _reserve_per_device(case) - weights_bytes_per_device(case)
    return maximum(left, 0)


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


def _matmul_params_active(shape: ModelShape) -> Real:
    """Weights in matrix products for one token, output head left out."""
    total: Real = 0.0
    for g in shape.groups:
        if not g.weights:
            continue
        per_layer: Real = 0.0
        if g.attention is not None:
            per_layer = per_layer + as_float(g.attention.matmul_params())
        if g.feed_forward is not None:
            per_layer = per_layer + as_float(g.feed_forward.active_params())
        if g.scope.kind == "recurrent":  # all but a few thousand of a state layer's weights
            per_layer = per_layer + as_float(g.other_params)
        total = total + g.count * per_layer
    return total


def decode_flops(case: Case) -> Real:
    """One step of the whole batch: 2 per weight and token, and every query against its cache.

    Softmax, norms and rotary embeddings are ignored; absorbed arithmetic for MLA.
    """
    work, shape = case.workload, case.shape
    per_token = 2.0 * (
        _matmul_params_active(_decoding(shape)) + as_float(shape.embedding_params) * shape.head
    )
    for g in shape.groups:
        if g.attention is not None and g.scope.caches:
            keys = as_float(g.scope.tokens(work.context))
            per_token = per_token + g.count * g.attention.score_flops("decode") * keys
    return work.batch * per_token


def _decoding(shape: ModelShape) -> ModelShape:
    """The layers that run for each generated token: all but an encoder's."""
    if shape.arch != "encoder-decoder":
        return shape
    groups = tuple(g for g in shape.groups if g.label != "encoder")
    return ModelShape(
        d_model=shape.d_model,
        n_layers=shape.n_layers,
        vocab_size=shape.vocab_size,
        groups=groups,
        tied=shape.tied,
        other_params=shape.other_params,
        arch=shape.arch,
        head=shape.head,
        d_embedding=shape.d_embedding,
    )


def attended_pairs(tokens: Real, scope_kind: str, size: Count, causal: bool = True) -> Real:
    """Query-key pairs that a prefill of ``tokens`` computes: half the square where causal.

    A window of ``size`` keeps ``size`` keys per query, its first tokens fewer.
    """
    n = as_float(tokens) if not isinstance(tokens, float) else tokens
    if not causal or scope_kind == "none":
        return n * n
    triangle = n * (n + 1.0) / 2.0
    if scope_kind not in ("window", "chunk"):
        return triangle
    w = minimum(as_float(size), n)
    return w * (w + 1.0) / 2.0 + (n - w) * w


def prefill_flops(case: Case) -> Real:
    """The whole batch's prompt of ``context`` tokens, causal; the output head runs once each.

    For an encoder-decoder the source passes the encoder and is projected for cross-attention.
    """
    work, shape = case.workload, case.shape
    tokens = as_float(work.context)
    total: Real = 2.0 * as_float(shape.embedding_params) * shape.head
    for g in shape.groups:
        source = as_float(work.source_len)
        encodes = g.label == "encoder" and shape.arch == "encoder-decoder"
        rows = source if encodes or g.scope.kind == "cross" else tokens
        weights: Real = 0.0
        if g.weights and g.attention is not None:
            weights = weights + as_float(g.attention.matmul_params())
        if g.weights and g.feed_forward is not None:
            weights = weights + as_float(g.feed_forward.active_params())
        pairs: Real = 0.0
        if g.attention is not None:
            causal = shape.arch != "encoder" and not encodes
            pairs = (
                tokens * source
                if g.scope.kind == "cross"
                else attended_pairs(rows, g.scope.kind if causal else "none", g.scope.size, causal)
            )
            pairs = pairs * g.attention.score_flops("prefill")
        total = total + g.count * (2.0 * weights * rows + pairs)
    return work.batch * total
