"""A document as Markdown that can be committed: stable for equal input, no dates, no colours."""

from __future__ import annotations

import re
from urllib.parse import quote

from configurator.render.document import Document, Section, Table

__all__ = ["to_markdown"]

_SPECIAL = re.compile(r"([\\`*_<>\[\]|])")
_NOTICE = {"bad": "**Not possible as asked.** ", "warning": ""}


def to_markdown(document: Document) -> str:
    """The document in GitHub's Markdown, ending with one newline."""
    parts = [f"# {_text(document.title)}", f"**{_text(document.answer)}**"]
    if document.asked:
        parts.append(f"Asked: {_text(document.asked)}")
    parts += [_section(s) for s in document.sections if not s.empty]
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """Escape what Markdown would take for markup; underscores inside words are left alone."""
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", _SPECIAL.sub(r"\\\1", text))


def _section(section: Section) -> str:
    parts = [f"## {_text(section.title)}"] if section.title else []
    if section.lead:
        parts.append(_NOTICE.get(section.tone, "") + _text(section.lead))
    if section.facts:
        parts.append(
            "\n".join(f"- **{_text(label)}**: {_text(text)}" for label, text in section.facts)
        )
    if section.table:
        parts.append(_table(section.table))
    if section.points:
        parts.append("\n".join(f"- {_text(point)}" for point in section.points))
    if section.note:
        parts.append(_text(section.note))
    if section.code:
        parts.append(f"```\n{section.code}\n```")
    parts += [f"![{_text(words)}]({quote(link)})" for link, words in section.pictures]
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    rules = ["---:" if i in table.right else "---" for i in range(len(table.header))]
    rows = [table.header, tuple(rules), *table.rows]
    lines = []
    for number, row in enumerate(rows):
        cells = row if number == 1 else [_text(" ".join(cell.split())) for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
