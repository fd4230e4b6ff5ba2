"""The models of a backtest one by one, and width and depth from a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from configurator.core.units import format_count
from configurator.render.document import Section, Table

__all__ = ["differences", "free_shape", "model_by_model", "percent"]


def percent(value: float | None) -> str:
    """A share in percent with one digit; ``-`` where there is nothing to count."""
    return "-" if value is None or value != value else f"{100 * value:.1f}"


def free_shape(found: Mapping[str, Any]) -> tuple[Section, ...]:
    """Width and depth from the budget alone."""
    keys = ("near", "near_with_vocabulary", "any_near", "any_near_with_vocabulary")
    groups = {"plain": found["plain"], "all dense": found["all"]}
    groups |= {f"plain, {name}": s for name, s in found["plain_by_size"].items()}
    groups |= {f"plain, {name}": s for name, s in found["plain_by_year"].items()}
    rows = tuple(
        (name, f"{s['models']}", f"{s['shapes']:.0f}", *(percent(s[k]) for k in keys))
        for name, s in groups.items()
        if s["models"]
    )
    return (
        Section(
            title="Free shape: width and depth from the budget",
            lead=(
                "Percent of dense models whose width and depth are both within 25 % of ours, with "
                "only parameters, context and target given, then with the vocabulary too; "
                "and of the usual, deeper and flatter shapes any."
            ),
            table=Table(
                header=("Set", "Models", "Shapes", "Budget", "and vocabulary", "Any of 3",
                        "and vocabulary"),
                rows=rows,
                right=(1, 2, 3, 4, 5, 6),
            ),
        ),
    )  # fmt: skip


def _heads(g: Mapping[str, Any]) -> str:
    if g["projection"] == "MLA":
        return f"MLA {g['n_heads']} x {g['d_head']}, rank {g['kv_lora_rank']}"
    return f"{g['projection']} {g['n_heads']}/{g['n_kv_heads']} x {g['d_head']}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def model_by_model(models: Sequence[Mapping[str, Any]]) -> Section:
    """Every model: what was asked, what was published, what we say, and what differs."""
    rows = []
    for r in models:
        evidence = r["evidence"] or {}
        fits = "" if r["ours"]["fits"] else " (does not fit)"
        offered = "yes" if r["listed"]["projection_and_kv"] else "front" if r["on_front"] else "no"
        rows.append(
            (
                f"{r['model']} ({r['year']})",
                format_count(r["params"]) + ("" if r["plain"] else " *"),
                f"{r['d_model']:,} x {r['n_layers']}",
                r["request"]["target"],
                _heads(r["published"]),
                "the same" if r["agrees"]["geometry"] else _heads(r["ours"]) + fits,
                offered,
                _times(evidence.get("cache_times")),
                _times(evidence.get("decode_times")),
                evidence.get("favours", "-"),
            )
        )
    return Section(
        title="Model by model",
        table=Table(
            header=("Model", "Params", "d_model x layers", "Target", "Published", "Ours",
                    "Listed", "Cache, theirs", "Decode, theirs", "Evidence"),
            rows=tuple(rows),
            right=(1, 7, 8),
        ),
        note=(
            "* windows, other mixers or shared caches in some layers, which the question did not "
            "tell. Cache and decode: theirs over ours, on the busiest device."
        ),
        brief="--format markdown lists every model.",
    )  # fmt: skip


_FAVOURS = {
    "ours": "favours ours",
    "theirs": "favours theirs",
    "neither": "favours neither",
    "cannot tell": "cannot tell",
}


def differences(models: Sequence[Mapping[str, Any]]) -> Section:
    """For each model that differs: the evidence in numbers, and what other labs chose."""
    rows = tuple(
        (
            r["model"],
            f"{_FAVOURS[r['evidence']['favours']]}; {r['evidence']['says']}",
            r["field"] or "no point on which the field can be asked",
        )
        for r in models
        if r["evidence"]
    )
    return Section(
        title="Where we differ: the evidence, and the field",
        lead=(
            "The evidence is what published ablations and the latency model say of the two at "
            "equal parameters; the field is what other labs chose at about the same budget."
        ),
        table=Table(header=("Model", "The evidence", "The field"), rows=rows) if rows else None,
        brief=f"{len(rows)} models differ in some point; --format markdown lists each.",
    )
