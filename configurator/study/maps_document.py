"""Maps of heads as a document: figures in a table, each map drawn in shades of characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from textwrap import wrap

import numpy as np

from configurator.render.curves import Map, maps_svg
from configurator.render.document import Document, Section, Table
from configurator.study.head_maps import HeadMap, Maps, measures

__all__ = ["document", "drawn", "picture"]

_SHADES = " ░▒▓█"
_ABOVE = (0.04, 0.16, 0.36, 0.64)
"""Weights from which each darker shade is used: even steps of the square root, as in the SVG."""
_MOST_SHOWN = 16
_WIDE, _NARROW = 28, 56
"""Columns of a map that fit 80 letters: with two for a cell, and with one."""


def document(found: Maps) -> Document:
    """For terminal, Markdown and HTML."""
    keys = found.source or found.text
    layers = sorted({head.layer for head in found.heads})
    shape = f"{len(found.text)} x {len(keys)} pieces"
    seen = "each sees itself and what comes before" if found.causal else "each sees all"
    return Document(
        title="Attention of each head",
        answer=f"{len(found.heads)} heads over {shape}, {found.weights}.",
        asked=" ".join(found.text),
        sections=(
            Section(title="Figures", table=_table(found), note=_legend(found)),
            *(
                Section(
                    title=f"Layer {layer}" if len(layers) > 1 else "Maps",
                    lead=f"Rows look at columns; {seen}." if layer == layers[0] else "",
                    code="\n\n".join(
                        drawn(head, found.text, keys) for head in found.heads if head.layer == layer
                    ),
                )
                for layer in layers
            ),
            Section(title="Caution", lead=found.caution),
        ),
    )


def drawn(head: HeadMap, rows: Sequence[str], columns: Sequence[str]) -> str:
    """One map as lines of text: a number, a cell for each key, then the word.

    A map too wide for 80 letters is drawn in parts, side by side in the picture and one below the
    other here; of the later parts, rows without weight are left out. Words come last and are
    isolated, so that those written from right to left cannot reorder the cells.
    """
    parts = [
        _part(head, rows, range(start, min(start + _NARROW, len(columns))), len(columns))
        for start in range(0, len(columns), _NARROW)
    ]
    if tuple(columns) != tuple(rows):
        keys = "keys: " + ", ".join(f"{i + 1} {_isolated(w)}" for i, w in enumerate(columns))
        parts.append("\n".join(f"    {line}" for line in wrap(keys, 74, break_on_hyphens=False)))
    return "\n".join(parts)


def _part(head: HeadMap, rows: Sequence[str], columns: range, n_columns: int) -> str:
    title = f"layer {head.layer}, head {head.head}"
    if len(columns) < n_columns:
        title += f", keys {columns[0] + 1} to {columns[-1] + 1} of {n_columns}"
    wide = n_columns <= _WIDE
    ruler = "".join(f"{i + 1:<10}" for i in columns[:: 5 if wide else 10])
    lines = [title, " " * 4 + ruler.rstrip()]
    for place, (word, row) in enumerate(zip(rows, head.weights, strict=True)):
        weights = row[columns[0] : columns[-1] + 1]
        if columns[0] and not any(weights):
            continue
        cells = "".join(_SHADES[sum(w >= edge for edge in _ABOVE)] * (1 + wide) for w in weights)
        lines.append(f"{place + 1:>3} {cells}| {_isolated(word)}")
    return "\n".join(lines)


def picture(found: Maps) -> str:
    """The maps as one SVG document."""
    keys = found.source or found.text
    maps = [
        Map(
            title=f"layer {head.layer}, head {head.head}: entropy {head.entropy_bits:.2f} bits",
            weights=head.weights,
            rows=found.text,
            columns=keys,
        )
        for head in found.heads
    ]
    return maps_svg(maps, title=f"Attention of each head, {found.weights}", caption=found.caution)


def _table(found: Maps) -> Table:
    crossed = found.source is not None
    header = ["Head", "Entropy, bits", "Of most", "First"]
    if not crossed:
        header += ["Distance", "Itself", "Before", "Follower"]
    rows = []
    for head in (*found.heads, _even(found)):
        name = f"{head.layer}.{head.head}" if head.layer else "even"
        row = [name, f"{head.entropy_bits:.2f}", f"{head.entropy_share:.0%}",
               _share(head.to_first)]  # fmt: skip
        if not crossed:
            row += [f"{head.distance:.1f}", _share(head.to_self), _share(head.to_previous),
                    _share(head.to_follower)]  # fmt: skip
        rows.append(tuple(row))
    return Table(header=tuple(header), rows=tuple(rows), right=tuple(range(1, len(header))))


def _even(found: Maps) -> HeadMap:
    """A head that looks evenly at all it may see: what the figures of the others compare with."""
    n_rows, n_columns = len(found.text), len(found.source or found.text)
    seen = np.tri(n_rows) if found.causal else np.ones((n_rows, n_columns))
    return measures(
        seen / seen.sum(axis=1, keepdims=True), layer=0, head=0, causal=found.causal,
        words=found.text, cross=found.source is not None,
    )  # fmt: skip


def _legend(found: Maps) -> str:
    text = (
        "Even: a head that looks alike at all it may see, to compare with. Entropy: how spread a "
        "row is, and as a share of the most it could be. "
    )
    if found.source is not None:
        return text + "First: mean weight on the source's first piece."
    return (
        text + "Distance: mean number of pieces looked back or ahead. Mean weight on the first "
        "piece, on the piece itself, on the one before, and on what followed an earlier occurrence "
        "of the same piece, as an induction head does (- where no piece recurs)."
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _isolated(word: str) -> str:
    """The word, set apart for the bidirectional algorithm where it has letters that need it."""
    plain = _cut(word.replace("`", "'"))
    backwards = any(unicodedata.bidirectional(c) in ("R", "AL") for c in plain)
    return f"\u2068{plain}\u2069" if backwards else plain


def _cut(word: str) -> str:
    """The word, or its start where it is wider than 16 letters; East Asian ones count twice."""
    widths = (1 + (unicodedata.east_asian_width(c) in "WF") for c in word)
    fitting = sum(width <= _MOST_SHOWN for width in accumulate(widths))
    return word if fitting == len(word) else f"{word[: fitting - 1]}…"
