"""A document on a terminal: the answer first, in colour where the terminal has any."""

from __future__ import annotations

import os
import sys
from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from configurator.render.document import Document, Section, Table

__all__ = ["console", "show", "to_text"]

_PIPE_WIDTH = 100
_WIDE = 140
_NAME = 24
_TONES = {"bad": "bold red", "warning": "yellow", "plain": ""}


def console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console on ``file`` (stdout): colour on terminals alone, 100 columns where it is none."""
    stream = sys.stdout if file is None else file
    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False)


def show(document: Document, file: IO[str] | None = None, width: int | None = None) -> None:
    """Draw the document on ``file``, standard output by default."""
    out = console(file, width)
    out.print(Text(document.answer, style="bold green" if document.good else "bold red"))
    if document.asked:
        out.print(Text(document.asked, style="dim"))
    for section in document.sections:
        if not section.empty:
            _section(out, section)


def to_text(document: Document, width: int = _PIPE_WIDTH) -> str:
    """The same as plain text, without colours: what a pipe or a file gets."""
    from io import StringIO

    buffer = StringIO()
    show(document, buffer, width)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _section(out: Console, section: Section) -> None:
    tone = _TONES[section.tone]
    out.print()
    if section.title:
        out.print(Text(section.title, style=tone or "bold"))
    if section.lead:
        out.print(Padding(Text(section.lead, style=tone), (0, 0, 0, 2)))
    if section.facts:
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in section.facts:
            grid.add_row(Text(label), Text(text))
        out.print(Padding(grid, (0, 0, 0, 2)))
    points = section.points
    if section.brief:
        out.print(Padding(Text(section.brief), (0, 0, 0, 2)))
    elif section.table:
        apart = section.table.prose and out.width < _WIDE
        if _least_width(section.table, apart) > out.width:
            points = (*_stacked(section.table), *points)
        else:
            out.print(Padding(_table(section.table, apart), (0, 0, 0, 1)))
            points = (*(_prose(section.table) if apart else ()), *points)
    for point in points:
        grid = Grid.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text("-"), Text(point, style=tone))
        out.print(Padding(grid, (0, 0, 0, 2)))
    if section.note:
        out.print(Padding(Text(section.note, style="dim"), (0, 0, 0, 2)))
    if section.code:
        for line in section.code.splitlines():  # never broken, so that it can be copied
            out.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


def _least_width(table: Table, figures_alone: bool) -> int:
    """Columns that the table needs: figures stay on one line, words may wrap at ten letters."""
    cells = list(zip(table.header, *table.rows, strict=True))
    kept = cells[: len(cells) - figures_alone]
    widths = (
        max(map(len, column)) if _whole(table, i) else min(10, max(map(len, column)))
        for i, column in enumerate(kept)
    )
    return 1 + sum(width + 2 for width in widths)


def _whole(table: Table, column: int) -> bool:
    """Whether a column's cells must not be broken: figures, and names that are short."""
    name = column == 0 and max((len(row[0]) for row in table.rows), default=0) <= _NAME
    return name or column in table.right


def _stacked(table: Table) -> tuple[str, ...]:
    """Rows as sentences, for a terminal too narrow for the table."""
    rest = table.header[1:]
    return tuple(
        f"{row[0]}: "
        + "; ".join(
            cell if table.prose and name == rest[-1] else f"{name} {cell}"
            for name, cell in zip(rest, row[1:], strict=True)
            if cell
        )
        for row in table.rows
    )


def _prose(table: Table) -> tuple[str, ...]:
    rows = table.rows[1:] if table.lead else table.rows
    return tuple(f"{row[0]}: {row[-1]}" for row in rows if row[-1])


def _table(table: Table, figures_alone: bool) -> Grid:
    grid = Grid(box=None, padding=(0, 1), header_style="dim", pad_edge=True)
    count = len(table.header) - figures_alone
    for i, name in enumerate(table.header[:count]):
        grid.add_column(
            Text(name),
            justify="right" if i in table.right else "left",
            overflow="fold",
            no_wrap=_whole(table, i),
        )
    for number, row in enumerate(table.rows):
        style = "bold" if table.lead and number == 0 else ""
        grid.add_row(*(Text(cell) for cell in row[:count]), style=style)
    return grid
