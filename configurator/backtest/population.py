"""Which published models are asked about, and the question that each one's team faced."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from configurator.catalog import published, targets
from configurator.catalog.model_card import PublishedModel

__all__ = ["CONTEXT_CUT", "SINCE", "Subject", "request_of", "shape_key", "subjects"]

SINCE = 2024
CONTEXT_CUT = 131_072  # longer limits were mostly reached by later extension
CONTEXT_UNKNOWN = 32_768
_KINDS = ("MHA", "GQA", "MQA", "MLA")
# The smallest target a team of this size would serve on, with all its devices in one split.
_TARGETS = (
    (4e9, "rtx-4090"),
    (40e9, "h100-sxm"),
    (120e9, "8xh100-sxm"),
    (math.inf, "8xh200-sxm"),
)
_NODE, _NODE_SHARE = "8xh200-sxm", 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One published model and the request that asks about it.

    ``weight`` is one over the number of models with which its lab repeats this shape, so that a
    shape counts once however often it was released.
    """

    model: PublishedModel
    request: dict[str, Any]
    weight: float


def subjects(since: int = SINCE, models: Sequence[PublishedModel] | None = None) -> list[Subject]:
    """Decoders since ``since`` with one of the four projections and a known total, by year.

    One whose KV heads vary by layer has no count to compare with, and is left out.
    ``models`` are asked about in place of the catalog's. Windowed and hybrid ones are among them;
    ``model.plain`` tells those whose every layer is full attention and nothing else.
    """
    every = published.models() if models is None else models
    found = [
        m
        for m in every
        if m.arch == "decoder" and m.year >= since and m.projection in _KINDS and m.total_params
        and (m.n_kv_heads or m.projection == "MLA")
    ]  # fmt: skip
    repeats = Counter(map(shape_key, found))
    return [
        Subject(model=m, request=request_of(m), weight=1.0 / repeats[shape_key(m)]) for m in found
    ]


def shape_key(m: PublishedModel) -> tuple[object, ...]:
    """What makes two models of one lab the same shape."""
    return (m.org, m.d_model, m.n_layers, m.n_heads, m.n_kv_heads, m.d_head, m.projection)


def request_of(m: PublishedModel) -> dict[str, Any]:
    """What the model's designers knew, as ``recommend`` takes it: no geometry and no name.

    Total and active parameters, width and depth, the context, and a target by size; what exceeds
    nine tenths of one node in bf16 gets as many nodes as it needs, with data-parallel attention.
    """
    asked: dict[str, Any] = {
        "params": m.total_params,
        "d_model": m.d_model,
        "n_layers": m.n_layers,
        "context": min(m.max_position or CONTEXT_UNKNOWN, CONTEXT_CUT),
        "allow_decoupled_heads": True,
        "target": next(name for limit, name in _TARGETS if m.total_params <= limit),
    }
    if m.is_moe and 0 < m.active_params < m.total_params:
        asked["active_params"] = m.active_params
    node = targets.device(_NODE)
    nodes = math.ceil(2 * m.total_params / (_NODE_SHARE * node.count * node.memory_bytes))
    if nodes > 1:
        asked |= {"target": f"{nodes}x{_NODE}", "tensor_parallel": 1}
    return asked
