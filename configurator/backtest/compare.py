"""One published model beside the advisor's answer: what agrees, what differs, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configurator.budget import Frame
from configurator.catalog.model_card import PublishedModel
from configurator.core.case import Case
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.question import Question, on_front
from configurator.rank import Principles, order, principles
from configurator.schema import Request
from configurator.search import PROJECTIONS, Grid, Table, only, shape_of, tabulate

__all__ = ["MEASURES", "answered", "agreement", "compared", "geometry_of", "thumb"]

MEASURES = ("projection", "d_head", "n_heads", "kv_equal", "kv_within_2", "geometry")
Geometry = dict[str, Any]
_LATENT = ("q_lora_rank", "qk_rope_head_dim", "v_head_dim")


def geometry_of(m: PublishedModel) -> Geometry:
    """A published geometry; MLA's head width is that of its keys without position."""
    latent = m.projection == "MLA"
    return {
        "projection": m.projection,
        "n_heads": m.n_heads,
        "n_kv_heads": 1 if latent else m.n_kv_heads,
        "d_head": m.qk_nope_head_dim if latent else m.d_head,
        "kv_lora_rank": m.kv_lora_rank,
        **({name: getattr(m, name) for name in _LATENT} if latent else {}),
    }


def thumb(d_model: int) -> Geometry:
    """The rule of thumb: heads of 128 from a width of 2,048, of 64 below; 8 KV heads."""
    width = 128 if d_model >= 2048 else 64
    heads = d_model / width
    return {
        "projection": "GQA",
        "n_heads": int(heads) if heads == int(heads) else round(heads, 1),
        "n_kv_heads": 8,
        "d_head": width,
        "kv_lora_rank": 0,
    }


def agreement(one: Geometry, other: Geometry) -> dict[str, bool]:
    """Where two geometries agree; KV heads only where the projections do, MLA having none."""
    kind = one["projection"] == other["projection"]
    latent = "MLA" in (one["projection"], other["projection"])
    ratio = one["n_kv_heads"] / other["n_kv_heads"]
    heads = one["n_heads"] == other["n_heads"]
    width = latent or one["d_head"] == other["d_head"]
    equal = kind and (latent or ratio == 1)
    return {
        "projection": kind,
        "d_head": width,
        "n_heads": heads,
        "kv_equal": equal,
        "kv_within_2": kind and (latent or 0.5 <= ratio <= 2.0),
        "geometry": kind and width and heads and equal,
    }


def answered(table: Table, i: int) -> Geometry:
    """One row of a table as a geometry."""
    return {
        "projection": PROJECTIONS[int(table.projection[i])],
        "n_heads": int(table.n_heads[i]),
        "n_kv_heads": int(table.n_kv_heads[i]),
        "d_head": int(table.d_head[i]),
        "kv_lora_rank": int(table.kv_lora_rank[i]),
    }


def compared(item: dict[str, Any]) -> dict[str, Any]:
    """The row of one model: ``item`` holds the request and the published geometry; JSON out.

    The request alone is answered; the published geometry is then priced inside the same frame,
    at the same parameters, context and target.
    """
    question = Question(Request(**item["request"]))
    frame = question.frames[0]
    grids = question.grids(frame)
    table, ranked = question.ranked(grids, frame)
    chosen, theirs = answered(table, ranked[0]), item["published"]
    listed = [ranked[0], *question.shortlist(table, ranked, on_front(table))]
    both = tabulate((*grids, _published_grid(theirs, frame, question)))
    last = len(both) - 1
    among = replace(both, admissible=both.admissible | (np.arange(len(both)) == last))
    return {
        "ours": {**chosen, "fits": bool(table.fits[ranked[0]])},
        "agrees": agreement(chosen, theirs),
        "listed": _listed(theirs, [answered(table, i) for i in listed]),
        "listed_in_five": _listed(theirs, [answered(table, i) for i in listed[:5]]),
        "on_front": bool(on_front(among)[last]),
        "costs": {"ours": _costs(both, ranked[0]), "published": _costs(both, last)},
        "without": _without(table, question, frame, theirs),
    }


def _published_grid(theirs: Geometry, frame: Frame, question: Question) -> Grid:
    """The published heads in our frame, as a grid of one row."""

    def column(name: str) -> Any:
        return np.array([theirs[name]], dtype=np.int64)

    attention: Attention
    if theirs["projection"] == "MLA":
        attention = Latent(
            d_model=frame.d_model,
            n_heads=column("n_heads"),
            kv_lora_rank=column("kv_lora_rank"),
            q_lora_rank=column("q_lora_rank"),
            qk_nope_head_dim=column("d_head"),
            qk_rope_head_dim=column("qk_rope_head_dim"),
            v_head_dim=column("v_head_dim"),
        )
    else:
        attention = GroupedQuery(
            d_model=frame.d_model,
            n_heads=column("n_heads"),
            n_kv_heads=column("n_kv_heads"),
            d_head=column("d_head"),
        )
    case = Case(
        shape=shape_of(frame, attention), workload=question.workload, device=question.device
    )
    return Grid(case=case, rows=1)


def _costs(table: Table, i: int) -> dict[str, float | None]:
    seconds = float(table.decode_s[i])
    return {
        "cache_bytes": int(table.cache_bytes[i]),
        "device_bytes": int(table.device_bytes[i]),
        "decode_s": seconds if seconds == seconds else None,
        "expected_nats": float(table.expected_nats[i]),
    }


def _listed(theirs: Geometry, options: list[Geometry]) -> dict[str, bool]:
    """Whether a list holds the projection with the exact KV heads; with the width; with all."""

    def near(o: Geometry, *keys: str) -> bool:
        same = all(o[k] == theirs[k] for k in ("projection", *keys))
        return same and (o["projection"] == "MLA" or o["n_kv_heads"] == theirs["n_kv_heads"])

    return {
        "projection_and_kv": any(near(o) for o in options),
        "and_d_head": any(near(o, "d_head") for o in options),
        "and_n_heads": any(near(o, "d_head", "n_heads") for o in options),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _FlatEight(Principles):
    """The principles with a flat 8 in place of P5."""

    def kv_heads(self, d_head: Any, cap: int = 8) -> np.ndarray:
        return np.full(np.shape(d_head), 8.0)


def _without(
    table: Table, question: Question, frame: Frame, theirs: Geometry
) -> dict[str, dict[str, bool]]:
    """How the answer would agree if one principle were dropped for what was usual before it."""
    wish = principles(frame, question.workload, question.device)
    grouped = ("GQA", "MLA", "MQA", "MHA")
    plain_width = 128 if frame.d_model >= 2048 and frame.d_model % 128 == 0 else 64
    fields = {name: getattr(wish, name) for name in Principles.__dataclass_fields__}
    everywhere = np.full(len(table), np.inf)
    changed: dict[str, tuple[Table, Principles]] = {
        "P0 memory": (replace(table, room_bytes=everywhere), wish),
        "P1 MLA over nodes": (table, replace(wish, projection=grouped)),
        "P2 GQA first": (table, replace(wish, projection=("MHA", "GQA", "MLA", "MQA"))),
        "P3 heads of 128": (
            table,
            replace(wish, d_head=plain_width, n_heads=max(1, frame.d_model // plain_width)),
        ),
        "P4 wider queries": (
            table,
            replace(wish, n_heads=max(1, round(frame.d_model / wish.d_head))),
        ),
        "P5 KV heads by width": (table, _FlatEight(**fields)),
    }
    found = {}
    for name, (columns, other) in changed.items():
        best = int(order(only(columns, question.asked), other)[0])
        found[name] = agreement(answered(columns, best), theirs)
    return found
