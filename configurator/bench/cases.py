"""From a case to points: the geometry, its alternatives, and smaller contexts for the trend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from configurator.bench.formulations import formulations as decode_forms
from configurator.bench.points import Point, attention_to
from configurator.bench.prefill import PREFILL
from configurator.core.case import Case
from configurator.core.errors import UsageError, unknown
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.shapes import check_groups

__all__ = ["alternatives", "points_of"]

_LEAST_CONTEXT = 256
_MOST_PROMPT = 4096


def alternatives(attention: Attention) -> list[Attention]:
    """The geometry, then the same query heads as MHA, with 8 KV heads, and as MQA.

    A latent has none of these: its heads are of another width.
    """
    found: list[Attention] = [attention]
    if not isinstance(attention, GroupedQuery):
        return found
    for kv in (int(attention.n_heads), 8, 1):
        if int(attention.n_heads) % kv == 0:
            other = replace(attention, n_kv_heads=kv)
            if other not in found:
                found.append(other)
    return found


def points_of(
    case: Case,
    shapes: Sequence[Attention],
    *,
    device: str,
    phases: Iterable[str] = ("decode", "prefill"),
    formulations: tuple[str, ...] = (),
    compiled: bool = False,
    trend: bool = True,
    limit_s: float = 0.8,
) -> list[Point]:
    """Points of every geometry at the case's context and, for the trend, a quarter and a 16th.

    Decode also runs in a window where the model has one. A prompt longer than 4,096 tokens is
    measured at 4,096: its time grows with the square, and so is known. Compiled formulations
    are timed at the case's own context only.

    Raises ``UsageError`` for a phase or a formulation that is not known, and for query heads that
    are not a multiple of the KV heads: no kernel computes those.
    """
    work = case.workload
    for shape in shapes:
        check_groups(shape)
    phases = tuple(phases)
    for phase in phases:
        if phase not in ("decode", "prefill"):
            raise UsageError(f"phase {phase!r} is not known; write decode, prefill or both")
    _check_names(formulations, shapes, phases)
    context, batch = int(work.context), int(work.batch)
    contexts = [context]
    if trend:
        contexts += [c for c in (context // 4, context // 16) if c >= _LEAST_CONTEXT]
    windows = sorted({int(g.scope.size) for g in case.shape.groups if g.scope.kind == "window"})
    found: list[Point] = []
    for phase in phases:
        sizes = contexts
        if phase == "prefill":
            sizes = sorted({min(c, _MOST_PROMPT) for c in contexts}, reverse=True)
        for size in sizes:
            for shape in shapes:
                common: dict[str, Any] = {
                    "attention": attention_to(shape), "phase": phase, "batch": batch,
                    "context": size, "kv_dtype": work.kv.name, "device": device,
                    "formulations": formulations, "limit_s": limit_s,
                }  # fmt: skip
                found.append(Point(**common))
                if phase == "decode" and size == context:
                    found += [Point(**common, window=w) for w in windows if w < size]
                    if compiled and not formulations:
                        found.append(Point(**common, compiled=True))
    return found


def _check_names(names: Sequence[str], shapes: Sequence[Attention], phases: Sequence[str]) -> None:
    """Refuse a formulation that none of these geometries has in these phases."""
    forms = PREFILL if "prefill" in phases else ()
    if "decode" in phases:
        for latent in sorted({isinstance(shape, Latent) for shape in shapes}):
            forms = (*decode_forms(latent), *forms)
    known = tuple(dict.fromkeys(form.name for form in forms))
    for name in names:
        if name not in known:
            raise unknown("formulation", name, known, f"use {', '.join(known)}")
