"""Pictures as SVG: the same bytes for the same figures, so that they can be committed.

Matplotlib (``[plots]``) is loaded when a picture is drawn. Text stays text, no date is written,
and identifiers come from a fixed salt.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from configurator.core.errors import MissingExtra, UsageError

__all__ = ["figure", "latency_vs_context", "predicted_vs_measured", "to_svg"]

# Colours that differ in lightness too, so that they survive grey print (Okabe and Ito 2008).
_COLOURS = {
    "MHA": "#0072B2", "GQA": "#E69F00", "MQA": "#009E73", "MLA": "#CC79A7",
}  # fmt: skip
_OTHER = ("#56B4E9", "#D55E00", "#999999", "#000000")
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "mha-configurator",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "figure.figsize": (6.4, 4.0),
    "figure.constrained_layout.use": True,
}


def figure() -> tuple[Any, Any]:
    """A figure and its axes in the house style; raises ``MissingExtra`` without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtra("plots", "matplotlib", "a picture") from None
    with rc_context(_STYLE):
        drawn = Figure()
        FigureCanvasSVG(drawn)
        return drawn, drawn.subplots()


def to_svg(drawn: Any) -> str:
    """A figure as SVG text: no date, no random identifiers."""
    from matplotlib import rc_context

    held = io.StringIO()
    with rc_context(_STYLE):
        drawn.savefig(held, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in held.getvalue().splitlines()) + "\n"


def colour(name: str, place: int = 0) -> str:
    """The colour of a projection, or one of the others by its place."""
    return _COLOURS.get(name, _OTHER[place % len(_OTHER)])


def _timed(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The fastest trusted row of each case and phase."""
    best: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rows:
        key = (row["case"], row["phase"])
        if row["status"] != "ok" or not row["measured_s"]:
            continue
        if key not in best or row["measured_s"] < best[key]["measured_s"]:
            best[key] = row
    return list(best.values())


def _ratio(low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
    return min(*low, *high) / 1.5, max(*low, *high) * 1.5


def predicted_vs_measured(rows: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """Every case as a point, predicted against measured milliseconds, both axes logarithmic.

    On the line the two are equal; the band is a fifth to either side. Decode is filled, prefill
    hollow.

    Args:
        rows: rows of a benchmark's document: ``case``, ``phase``, ``projection``, ``status``,
            ``predicted_s`` and ``measured_s``; the fastest formulation of each case is drawn.
        title: above the picture.

    Raises:
        UsageError: no row has both times.
        MissingExtra: matplotlib is not installed.
    """
    found = [r for r in _timed(rows) if r["predicted_s"]]
    if not found:
        raise UsageError("no row has both a predicted and a measured time; nothing to draw")
    drawn, axes = figure()
    x = [1e3 * r["predicted_s"] for r in found]
    y = [1e3 * r["measured_s"] for r in found]
    low, high = _ratio(x, y)
    axes.plot([low, high], [low, high], color="#555555", linewidth=0.8, zorder=1)
    axes.fill_between(
        [low, high], [low / 1.2, high / 1.2], [low * 1.2, high * 1.2],
        color="#eeeeee", linewidth=0, zorder=0,
    )  # fmt: skip
    for place, name in enumerate(sorted({r["projection"] for r in found})):
        for phase in ("decode", "prefill"):
            chosen = [
                i for i, r in enumerate(found) if (r["projection"], r["phase"]) == (name, phase)
            ]
            if chosen:
                tint = colour(name, place)
                axes.scatter(
                    [x[i] for i in chosen], [y[i] for i in chosen], s=22, zorder=2,
                    edgecolors=tint, facecolors=tint if phase == "decode" else "none",
                    label=f"{name} {phase}",
                )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="predicted, ms for one layer", ylabel="measured, ms for one layer")
    axes.set_title(title, loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    return to_svg(drawn)


def latency_vs_context(rows: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """Decode milliseconds of one layer against the context, a line for each geometry.

    Measured points are joined; the dashed line beside them is the prediction.

    Args:
        rows: as for :func:`predicted_vs_measured`, with ``context``; other phases are left out.
        title: above the picture.

    Raises:
        UsageError: no row was timed in decode.
        MissingExtra: matplotlib is not installed.
    """
    found = [r for r in _timed(rows) if r["phase"] == "decode"]
    if not found:
        raise UsageError("no decode row was timed; nothing to draw")
    drawn, axes = figure()
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in found:
        lines.setdefault(_geometry(row), []).append(row)
    seen: dict[str, int] = {}
    for place, (name, points) in enumerate(lines.items()):
        points.sort(key=lambda r: r["context"])
        x = [r["context"] for r in points]
        kind = points[0]["projection"]
        repeat = seen.get(kind, 0)
        seen[kind] = repeat + 1
        tint = colour(kind, place) if not repeat else _OTHER[(place + repeat) % len(_OTHER)]
        axes.plot(
            x, [1e3 * r["measured_s"] for r in points], color=tint, marker="o", markersize=4,
            linewidth=1.3, label=name,
        )  # fmt: skip
        both = [(r["context"], 1e3 * r["predicted_s"]) for r in points if r["predicted_s"]]
        if both:
            axes.plot(*zip(*both, strict=True), color=tint, linestyle="--", linewidth=0.9)
    axes.set(xscale="log", yscale="log")
    axes.set_xscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    ticks = sorted({r["context"] for r in found})
    axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axes.set(xlabel="context, tokens", ylabel="decode, ms for one layer (dashed: predicted)")
    axes.set_title(title, loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    return to_svg(drawn)


def _geometry(row: Mapping[str, Any]) -> str:
    """What a line stands for: the case without its context."""
    parts = [p for p in str(row["case"]).split(", ") if not p.startswith("context")]
    return ", ".join(parts)
