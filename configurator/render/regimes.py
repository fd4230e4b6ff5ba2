"""A sweep as a document and as a picture: where each kind of attention is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from configurator.core.errors import MissingExtra
from configurator.core.units import format_bytes, format_count, format_seconds
from configurator.render.content import asked
from configurator.render.document import Document, Section, Table

if TYPE_CHECKING:
    from typing import Protocol

    class Axis(Protocol):
        """One axis of a sweep."""

        @property
        def name(self) -> str: ...
        @property
        def values(self) -> tuple[Any, ...]: ...
        @property
        def numeric(self) -> bool: ...

    class Swept(Protocol):
        """What ``sweep`` returns, as far as it is drawn (it lies above this layer)."""

        @property
        def axes(self) -> Sequence[Axis]: ...
        @property
        def rows(self) -> Sequence[Mapping[str, Any]]: ...
        @property
        def regimes(self) -> Sequence[Mapping[str, Any]]: ...
        @property
        def request(self) -> Mapping[str, Any]: ...
        @property
        def asked(self) -> int: ...
        @property
        def command(self) -> str: ...
        @property
        def version(self) -> str: ...


__all__ = ["document", "regimes_svg"]

_SIGNS = {"MHA": "M", "MQA": "1", "MLA": "L"}
_STATES = {"needs 8-bit weights": "~", "out of memory": ".", "refused": "x"}
_COLOURS = {
    "MHA": "#d55e00", "GQA-8": "#0072b2", "GQA-4": "#56b4e9", "GQA-2": "#009e73",
    "MQA": "#e69f00", "MLA": "#cc79a7",
}  # fmt: skip
_OTHER = "#000000"
_COLUMNS, _LONG, _POINTS = 64, 40, 9
Rows = Sequence[Mapping[str, Any]]


def value(name: str, at: Any) -> str:
    """A value of an axis: ``32k``, ``7B``, ``8``, a target's name."""
    if name == "params":
        return format_count(at)
    if name == "context":
        for size, letter in ((1 << 20, "M"), (1 << 10, "k")):
            if at >= size and at % (size // 4) == 0:
                return f"{at / size:g}{letter}"
    return f"{at:,}" if isinstance(at, int) else str(at)


def document(found: Swept) -> Document:
    """The map in letters, the regimes, how far each kind goes, and kinds side by side."""
    first = found.axes[0]
    changes = sum(1 for _ in found.regimes) - len(_series(found))
    names = " and ".join(a.name for a in found.axes)
    part = f", {len(found.rows):,} done" if len(found.rows) < found.asked else ""
    fixed = {k: v for k, v in found.request.items() if k not in {a.name for a in found.axes}}
    about = {"title": fixed["target"]} if fixed.get("target") else {}
    return Document(
        title=f"The answer over {names}",
        answer=f"{_many(len(found.regimes), 'regime')}, {_many(changes, 'change')} over "
        f"{_many(found.asked, 'point')}{part}",
        asked=asked(fixed, about),
        sections=(
            Section(title="Map", lead=_axis(first), code=_letters(found), note=_legend(found)),
            _regimes(found),
            _reach(found),
            _side_by_side(found),
            Section(
                title="Points that are not possible",
                points=tuple(dict.fromkeys(r["reason"] for r in found.rows if "reason" in r)),
            ),
            Section(title="This answer again", code=found.command),
            Section(lead=f"mha-configurator {found.version}"),
        ),
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _axis(first: Axis) -> str:
    ends = f"{value(first.name, first.values[0])} to {value(first.name, first.values[-1])}"
    return f"Along a line: {first.name} from {ends}."


def _series(found: Swept) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Rows along the first axis, one run for each value of the others."""
    others = [a.name for a in found.axes[1:]]
    runs = groupby(found.rows, key=lambda r: tuple(r[n] for n in others))
    return [
        (", ".join(f"{n} {value(n, v)}" for n, v in zip(others, at, strict=True)), list(rows))
        for at, rows in runs
    ]


def _sign(row: Mapping[str, Any]) -> str:
    if row["status"] in _STATES:
        return _STATES[row["status"]]
    name = row["answer"]
    return _SIGNS.get(name) or (name[4:] if len(name) == 5 else "G")


def _letters(found: Swept) -> str:
    series = _series(found)
    wide = max((len(name) for name, _ in series), default=0)
    lines = []
    for name, rows in series:
        step = max(1, -(-len(rows) // _COLUMNS))
        lines.append(f"{name:>{wide}} {''.join(_sign(r) for r in rows[::step])}".strip())
    return "\n".join(lines)


def _legend(found: Swept) -> str:
    used = {_sign(r): r["answer"] for r in found.rows if r["status"] == "ok"}
    said = [f"{sign} {name}" for sign, name in sorted(used.items())]
    said += [f"{_STATES[s]} {s}" for s in _STATES if any(r["status"] == s for r in found.rows)]
    return "; ".join(said) + "."


def _regimes(found: Swept) -> Section:
    first, others = found.axes[0].name, [a.name for a in found.axes[1:]]
    ends = {tuple(r[n] for n in (*others, first)): r for r in found.rows}
    rows = []
    for regime in found.regimes:
        last = ends[(*(regime[n] for n in others), regime["to"])]
        rows.append(
            (
                *(value(n, regime[n]) for n in others),
                value(first, regime["from"]),
                value(first, regime["to"]),
                f"{regime['answer']} x {regime['d_head']}" if regime["answer"] else "-",
                regime["status"],
                format_bytes(last["cache_bytes"]) if "cache_bytes" in last else "-",
                format_seconds(last.get("decode_s")),
            )
        )
    header = (*(n.capitalize() for n in others), "From", "To", "Answer", "Status", "Cache there",
              "Decode step there")  # fmt: skip
    return Section(
        title="Regimes",
        table=Table(header=header, rows=tuple(rows), right=(len(header) - 2, len(header) - 1)),
        note="Cache and decode step are those at the regime's end.",
        brief=f"{len(rows)} regimes; --format markdown lists them." if len(rows) > _LONG else "",
    )


def _reach(found: Swept) -> Section:
    """Along the first axis: how far each kind fits, and where it is the fastest that does."""
    first = found.axes[0]
    if not first.numeric:
        return Section()
    rows: list[tuple[str, ...]] = []
    for name, series in _series(found)[:_LONG]:
        for kind in _kinds(series):
            fits = [r[first.name] for r in series if r.get("kinds", {}).get(kind, {}).get("fits")]
            fast = [r[first.name] for r in series if r.get("fastest") == kind]
            answer = [r[first.name] for r in series if _answers(r, kind)]
            rows.append((name, kind, *(_span(first.name, v) for v in (fits, fast, answer))))
    header: tuple[str, ...] = ("At", "Kind", "Fits", "Fastest that fits", "Answer")
    if len(found.axes) == 1:
        header, rows = header[1:], [row[1:] for row in rows]
    return Section(
        title="How far each kind goes",
        table=Table(header=header, rows=tuple(rows)) if rows else None,
        note=(
            "Each kind with its best candidate of the recommended head width; times closer than "
            "10 % are a tie."
        ),
        brief=f"{len(rows)} rows; --format markdown lists them." if len(rows) > _LONG else "",
    )


def _answers(row: Mapping[str, Any], kind: str) -> bool:
    """Whether a kind's best candidate of the recommended head width is the answer, and fits."""
    own = row.get("kinds", {}).get(kind, {}).get("cache_bytes")
    fits = row["status"] not in ("out of memory", "refused")
    return row.get("answer") == kind and own == row["cache_bytes"] and fits


def _kinds(rows: Rows) -> list[str]:
    found = {kind for r in rows for kind in r.get("kinds", ())}
    return [kind for kind in (*_COLOURS, *sorted(found - set(_COLOURS))) if kind in found]


def _span(name: str, values: Sequence[Any]) -> str:
    if not values:
        return "nowhere"
    low, high = value(name, min(values)), value(name, max(values))
    return low if low == high else f"{low} to {high}"


def _side_by_side(found: Swept) -> Section:
    """Decode step of each kind at some points of a single axis."""
    if len(found.axes) > 1:
        return Section()
    first, rows = found.axes[0], [r for r in found.rows if r.get("kinds")]
    step = max(1, (len(rows) - 1) // (_POINTS - 1)) if len(rows) > 1 else 1
    kinds = _kinds(rows)

    def cell(row: Mapping[str, Any], kind: str) -> str:
        cost = row["kinds"].get(kind)
        if cost is None:
            return "-"
        return format_seconds(cost["decode_s"]) if cost["fits"] else "does not fit"

    table = Table(
        header=(first.name.capitalize(), *kinds),
        rows=tuple(
            (value(first.name, r[first.name]), *(cell(r, k) for k in kinds)) for r in rows[::step]
        ),
        right=tuple(range(1, len(kinds) + 1)),
    )
    return Section(title="Decode step of each kind", table=table if rows else None)


def regimes_svg(found: Swept) -> str:
    """The map in colours; with a single axis also each kind's decode step, as far as it fits.

    The same sweep gives the same bytes. Raises ``MissingExtra`` without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtra("plots", "matplotlib", "a picture of regimes") from None
    series, first = _series(found), found.axes[0]
    lines = len(found.axes) == 1 and first.numeric and any(r.get("kinds") for r in found.rows)
    tall = 0.9 + 0.28 * min(len(series), 40)
    settings: Any = {"svg.hashsalt": "mha-configurator", "svg.fonttype": "none", "font.size": 9.0}
    with rc_context(settings):
        figure = Figure(figsize=(8.0, tall + 1.0 + 2.8 * lines), layout="constrained")
        canvas: Any = FigureCanvasSVG(figure)
        grid = figure.add_gridspec(1 + lines, 1, height_ratios=[tall, 2.8][: 1 + lines])
        _bars(figure.add_subplot(grid[0]), series, first)
        if lines:
            _decode(figure.add_subplot(grid[1]), series[0][1], first)
        text = StringIO()
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _bars(axes: Any, series: Sequence[tuple[str, Rows]], first: Axis) -> None:
    """One bar for each run: a colour for each answer, hatched where it does not fit."""
    from matplotlib.patches import Patch

    shown: dict[tuple[str, str], Any] = {}
    for height, (_, rows) in enumerate(series):
        edges = _edges([r[first.name] for r in rows], first)
        for row, left, right in zip(rows, edges, edges[1:], strict=False):
            look = _look(row)
            axes.barh(height, right - left, left=left, height=0.9, linewidth=0, **look)
            name = row.get("answer", "") if row["status"] != "refused" else "not possible"
            state = "" if row["status"] in ("ok", "refused") else f", {row['status']}"
            shown.setdefault((name, state), Patch(**look, label=f"{name}{state}"))
    axes.set_yticks(range(len(series)), [name for name, _ in series])
    axes.invert_yaxis()
    axes.margins(x=0)
    _scale(axes, first)
    axes.legend(handles=list(shown.values()), fontsize=7, ncols=4, loc="lower center",
                bbox_to_anchor=(0.5, 1.0), frameon=False)  # fmt: skip


def _look(row: Mapping[str, Any]) -> dict[str, Any]:
    colour = _COLOURS.get(row.get("answer", ""), _OTHER)
    if row["status"] == "ok":
        return {"facecolor": colour}
    if row["status"] == "refused":
        return {"facecolor": "#dddddd"}
    hatch = "//" if row["status"] == "needs 8-bit weights" else "xx"
    return {"facecolor": "#ffffff", "edgecolor": colour, "hatch": hatch}


def _edges(values: Sequence[Any], first: Axis) -> list[float]:
    """Borders between neighbouring points: half-way in ratio, or around each place in a list."""
    if not first.numeric:
        return [i - 0.5 for i in range(len(values) + 1)]
    inner = [(a * b) ** 0.5 for a, b in pairwise(values)]
    return [float(values[0]), *inner, float(values[-1]) * (1.0 if inner else 1.1)]


def _scale(axes: Any, first: Axis) -> None:
    if not first.numeric:
        axes.set_xticks(range(len(first.values)), list(first.values))
        return
    axes.set_xscale("log", base=2)
    low, high = first.values[0], first.values[-1]
    ticks = [low]
    while ticks[-1] * 2 <= high:
        ticks.append(ticks[-1] * 2)
    ticks = ticks[:: max(1, len(ticks) // 9)]
    axes.set_xticks(ticks, [value(first.name, t) for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel(first.name)


def _decode(axes: Any, rows: Rows, first: Axis) -> None:
    for kind in _kinds(rows):
        known = [r for r in rows if r.get("kinds", {}).get(kind, {}).get("decode_s")]
        fits = [r for r in known if r["kinds"][kind]["fits"]]
        colour = _COLOURS.get(kind, _OTHER)
        for part, style in ((known, ":"), (fits, "-")):
            if part:
                axes.plot(
                    [r[first.name] for r in part],
                    [1e3 * r["kinds"][kind]["decode_s"] for r in part],
                    style, color=colour, lw=1.4, label=kind if style == "-" else None,
                )  # fmt: skip
    _scale(axes, first)
    axes.set_yscale("log")
    axes.set_ylabel("decode step, ms (dotted: does not fit)")
    axes.grid(alpha=0.25, lw=0.5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)
