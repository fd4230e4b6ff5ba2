"""What rules ask of a case: which kind of attention, which device, which derived figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from configurator.core.case import Case
from configurator.core.columns import as_float, maximum
from configurator.core.cost import params_total, sequence_bytes_per_rank
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.units import Count, Real, Truth, format_bytes, format_count


def is_grouped(case: Case) -> bool:
    """Whether the attention keeps key and value heads: MHA, GQA or MQA."""
    return isinstance(case.attention, GroupedQuery)


def is_latent(case: Case) -> bool:
    """Whether the attention keeps a latent: MLA that is not rebuilt into full heads."""
    return isinstance(case.attention, Latent) and not case.attention.rebuilt


def grouped(case: Case) -> GroupedQuery:
    """The attention, known to be grouped because the rule applies there only."""
    return cast(GroupedQuery, case.attention)


def latent(case: Case) -> Latent:
    """The attention, known to be latent because the rule applies there only."""
    return cast(Latent, case.attention)


def head_width(case: Case) -> Count:
    """Width of one query-key head; for MLA the part without position and the rotary part."""
    return cast(Any, case.attention).d_head


def value_width(case: Case) -> Count:
    """Width of one value head."""
    return cast(Any, case.attention).v_width


def group(case: Case) -> Count:
    """Query heads to one KV head, whole; 1 or more whatever the counts."""
    heads = grouped(case)
    return maximum(heads.n_heads // maximum(heads.n_kv_heads, 1), 1)


def kv_heads_for_groups_of(n_heads: int, most: int) -> int:
    """The fewest KV heads that divide ``n_heads`` into groups of at most ``most``."""
    return next(n for n in range(1, n_heads + 1) if n_heads % n == 0 and n_heads // n <= most)


def is_mha(case: Case) -> Truth:
    """Whether every query head has its own KV head."""
    return is_grouped(case) and grouped(case).n_kv_heads == case.attention.n_heads


def decodes(case: Case) -> bool:
    """Whether tokens are generated one by one from a cache; an encoder does not."""
    return case.shape.arch != "encoder" and case.shape.main.scope.caches


def one_of(value: Count, known: tuple[int, ...]) -> Truth:
    """Whether ``value`` is one of ``known``; element by element for a column."""
    return np.isin(value, known) if isinstance(value, np.ndarray) else value in known


def power_of_two(value: Count) -> Truth:
    """Whether ``value`` is 1, 2, 4, 8, ..."""
    return (value > 0) & ((value & (value - 1)) == 0)


def power_of_two_below(value: Real) -> Count:
    """The largest power of two not above ``value``, at least 1."""
    exponents = np.floor(np.log2(np.maximum(value, 1.0))).astype(np.int64)
    powers = np.left_shift(1, exponents)
    return powers if isinstance(value, np.ndarray) else int(powers)


def parameters(case: Case) -> Real:
    """All weights, as float64."""
    return as_float(params_total(case.shape))


def density(case: Case) -> Real:
    """``s``: all weights over ``12 * n_layers * d_model^2``, what a plain dense stack holds."""
    width = as_float(case.shape.d_model)
    return parameters(case) / (12.0 * as_float(case.shape.n_layers) * width * width)


def is_mixture(case: Case) -> bool:
    """Whether the feed-forward is a mixture of experts."""
    feed_forward = case.shape.feed_forward
    return feed_forward is not None and feed_forward.kind == "moe"


def next_in(value: Count, known: tuple[int, ...]) -> int | None:
    """The smallest of ``known`` that is at least ``value``, one number."""
    return min((option for option in known if option >= int(value)), default=None)


def closest(value: Count, known: tuple[int, ...]) -> int:
    """The one of ``known`` that is nearest to ``value``, the smaller of two."""
    return min(known, key=lambda option: abs(option - int(value)))


def listed(known: tuple[int, ...] | tuple[str, ...]) -> str:
    """``64, 128 or 256``."""
    words = [str(item) for item in known]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def one_sequence(case: Case) -> Count:
    """Cache of one sequence at the whole context on one rank, in bytes."""
    return sequence_bytes_per_rank(case)


def with_attention(case: Case, **changes: Any) -> Case:
    """The same case with fields changed in every layer of the main attention's kind."""
    kind = type(case.attention)
    groups = tuple(
        replace(g, attention=replace(cast(Any, g.attention), **changes))
        if isinstance(g.attention, kind)
        else g
        for g in case.shape.groups
    )
    return replace(case, shape=replace(case.shape, groups=groups))


def size(value: Count) -> str:
    """Bytes in words, for one case."""
    return format_bytes(int(value))


def count(value: Count) -> str:
    """A parameter count in words, for one case."""
    return format_count(float(value))


def several_ranks(case: Case) -> Truth:
    """Whether heads are split at all; with one rank the rules on splits have nothing to say."""
    return case.workload.tensor_parallel != 1


def rank_heads(case: Case) -> Count:
    """Query heads that one tensor-parallel rank computes, at least one."""
    return maximum(case.attention.n_heads // maximum(case.workload.tensor_parallel, 1), 1)


def layers_all_full(case: Case) -> bool:
    """Whether every layer that caches keeps the whole context."""
    kinds = {g.scope.kind for g in case.shape.groups if g.scope.caches}
    return kinds == {"full"}


def is_windowed(case: Case) -> bool:
    """Whether some layers keep a window only."""
    return any(g.scope.kind in ("window", "chunk") for g in case.shape.groups)


def smaller_cache(case: Case) -> str:
    """What would shrink this case's cache, in words: only what it does not do yet."""
    options = []
    if is_grouped(case) and grouped(case).n_kv_heads > 1:
        options.append("fewer KV heads")
    if case.workload.kv.k.bytes_per_element >= 2:
        options.append("an fp8 cache")
    if is_grouped(case) and parameters(case) >= 1e9:
        options.append("MLA")
    if is_latent(case) and case.workload.tensor_parallel > 1:
        options.append("fewer ranks, since each keeps the whole latent")
    if case.shape.arch == "decoder" and layers_all_full(case):
        options.append("a window on most layers")
    options.append("a shorter context")
    return listed(tuple(options))
