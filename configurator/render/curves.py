"""Pictures of training: curves with bands over seeds, sweeps over ranks, maps of heads. All SVG.

The same data give the same bytes: no dates, no random ids. Maps are written by hand, so that
words of any script are left to the viewer's fonts and matplotlib is not needed for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import escape

from configurator.core.errors import MissingExtra

__all__ = ["Map", "Panel", "Series", "maps_svg", "panels_svg"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's palette: told apart by colour-blind readers too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line: its points, and a band around them where several seeds were run."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False
    points: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes. ``lines`` are horizontal marks: a height and what it means."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    lines: Sequence[tuple[float, str]] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Attention weights of one head, rows are queries; each row sums to one."""

    title: str
    weights: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]


def panels_svg(panels: Sequence[Panel], *, title: str = "") -> str:
    """The panels side by side. Raises ``MissingExtra`` without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtra("plots", "matplotlib", "a picture of curves") from None
    settings: Any = {
        "svg.hashsalt": "mha-configurator",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9.0,
        "path.simplify": True,
    }
    with rc_context(settings):
        figure = Figure(figsize=(5.2 * len(panels), 3.8), layout="constrained")
        canvas = FigureCanvasSVG(figure)
        for place, panel in enumerate(panels):
            _draw(figure.add_subplot(1, len(panels), place + 1), panel)
        if title:
            figure.suptitle(title)
        text = StringIO()
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _draw(axes: Any, panel: Panel) -> None:
    for place, series in enumerate(panel.series):
        colour = _COLOURS[place % len(_COLOURS)]
        solid = ("-", "-.")[place // len(_COLOURS) % 2]  # a colour's second turn
        style = "--" if series.dashed else solid
        marker = "o" if series.points else None
        axes.plot(
            series.x, series.y, style, color=colour, label=series.label, marker=marker, ms=4, lw=1.4
        )
        if series.low is not None and series.high is not None:
            axes.fill_between(
                series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0
            )
    for height, meaning in panel.lines:
        axes.axhline(height, color="#666666", lw=0.8, ls=":")
        axes.annotate(
            meaning,
            (0.01, height),
            xycoords=("axes fraction", "data"),
            fontsize=7,
            color="#444444",
            va="bottom",
        )
    if panel.log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({float(x) for series in panel.series for x in series.x})
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    if panel.log_y:
        axes.set_yscale("log")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    axes.grid(alpha=0.25, lw=0.5)
    axes.legend(fontsize=7, frameon=False)


_CELL = 16
_LEFT, _TOP, _GAP = 110, 110, 28
_SLANT = 44
"""Room to the right of a map, over which the slanted name of its last column reaches."""
_PLAIN, _LARGE = 11, 14
_EM = 0.62
"""Width of a letter over the font's size: sans-serif fonts have 0.5 to 0.6 on average."""


def maps_svg(maps: Sequence[Map], *, title: str, caption: str = "", across: int = 2) -> str:
    """Heat maps in a grid: white is 0, dark blue 1; hovering over a cell tells its numbers."""
    grid = _LEFT + _CELL * max(len(m.columns) for m in maps) + _SLANT
    wide = max(grid, 12 + round(_PLAIN * _EM * max(len(m.title) for m in maps)) + _GAP)
    high = _TOP + _CELL * max(len(m.rows) for m in maps) + _GAP
    across = min(across, len(maps))
    down = -(-len(maps) // across)
    width = max(wide * across, 480)
    heading, notes = _lines(title, width, _LARGE), _lines(caption, width, _PLAIN)
    top = 22 + 18 * len(heading)
    bottom = top + high * down
    height = bottom + (10 + 14 * len(notes) if notes else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="{_PLAIN}">',
        f"<title>{_text(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(
            f'<text x="12" y="{24 + 18 * i}" font-size="{_LARGE}">{_text(line)}</text>'
            for i, line in enumerate(heading)
        ),
    ]
    for place, one in enumerate(maps):
        x, y = wide * (place % across), top + high * (place // across)
        parts += _one_map(one, x, y)
    for i, line in enumerate(notes):
        parts.append(f'<text x="12" y="{bottom + 14 * i}" fill="#555555">{_text(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(text: str, width: int, size: int) -> list[str]:
    """The text in lines that fit ``width`` in a font of that size."""
    return wrap(text, int((width - 24) / (size * _EM)))


def _one_map(one: Map, x: int, y: int) -> list[str]:
    left, top = x + _LEFT, y + _TOP
    parts = [f'<text x="{x + 12}" y="{y + 14}" font-weight="bold">{_text(one.title)}</text>']
    for i, (word, weights) in enumerate(zip(one.rows, one.weights, strict=True)):
        middle = top + i * _CELL + 12
        parts.append(f'<text x="{left - 6}" y="{middle}" text-anchor="end">{_short(word)}</text>')
        for j, weight in enumerate(weights):
            tip = _text(f"{word} → {one.columns[j]}: {weight:.3f}")
            parts.append(
                f'<rect x="{left + j * _CELL}" y="{top + i * _CELL}" width="{_CELL - 1}" '
                f'height="{_CELL - 1}" fill="{_shade(weight)}"><title>{tip}</title></rect>'
            )
    for j, word in enumerate(one.columns):
        cx, cy = left + j * _CELL + 11, top - 6
        parts.append(f'<text transform="translate({cx} {cy}) rotate(-60)">{_short(word)}</text>')
    return parts


def _shade(weight: float) -> str:
    """White at 0 to dark blue at 1; the square root shows small weights."""
    share = min(1.0, max(0.0, weight)) ** 0.5
    red, green, blue = (round(255 + share * (end - 255)) for end in (8, 48, 107))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _short(word: str, most: int = 14) -> str:
    return _text(word if len(word) <= most else word[: most - 1] + "…")


def _text(text: str) -> str:
    """Text as XML takes it: escaped, and without characters that XML 1.0 forbids."""
    return escape("".join(c for c in text if c.isprintable() or c in "\u200c\u200d"))
