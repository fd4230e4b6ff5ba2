"""A document without a format: what terminal, Markdown and HTML draw, each in its own way.

Content decides words and order once; a renderer only draws. All text is plain: no markup.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Document", "Section", "Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under a header.

    ``right`` names the columns that hold figures; ``lead`` sets the first row off: the choice;
    with ``prose`` the last column is text, which a narrow terminal lists below the figures.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    lead: bool = False
    prose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part: a lead sentence, labelled facts, a table, points, a note, a command; any may miss.

    ``pictures`` are links with their words, for files that can show them. ``tone`` is ``plain``,
    ``warning`` or ``bad``: how much the reader must not miss it. ``brief`` stands in for a long
    table on a terminal.
    """

    title: str = ""
    lead: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    table: Table | None = None
    points: tuple[str, ...] = ()
    note: str = ""
    code: str = ""
    tone: str = "plain"
    brief: str = ""
    pictures: tuple[tuple[str, str], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (
            self.lead or self.facts or self.table or self.points or self.code or self.pictures
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The answer in one line, what it answers, and the parts in reading order."""

    title: str
    answer: str
    asked: str = ""
    good: bool = True
    sections: tuple[Section, ...] = ()

    def with_pictures(self, *pictures: tuple[str, str]) -> Document:
        """The same with pictures (their links and words) above the first part."""
        return replace(self, sections=(Section(pictures=pictures), *self.sections))
