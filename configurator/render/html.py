"""A document as one HTML page that needs nothing else: no scripts, fonts or images."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from configurator.render.document import Document, Section, Table

__all__ = ["to_html"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; font-weight: 600; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.answer { font-size: 1.25rem; font-weight: 600; }
.asked, .label { opacity: .75; }
.bad, .warning { border-left: .3rem solid #b3261e; padding-left: .8rem; }
.warning { border-color: #b98900; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dd { margin: 0; } dt { font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #8886; }
td { vertical-align: top; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { padding: .8rem; background: #8882; overflow-x: auto; }
"""


def to_html(document: Document) -> str:
    """A self-contained page, ending with one newline."""
    title = escape(document.title)
    tone = "answer" if document.good else "answer bad"
    body = [f"<h1>{title}</h1>", f'<p class="{tone}">{escape(document.answer)}</p>']
    if document.asked:
        body.append(f'<p class="asked">Asked: {escape(document.asked)}</p>')
    body += [_section(s) for s in document.sections if not s.empty]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    if section.lead:
        parts.append(f"<p>{escape(section.lead)}</p>")
    if section.facts:
        rows = (f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in section.facts)
        parts.append("<dl>" + "".join(rows) + "</dl>")
    if section.table:
        parts.append(_table(section.table))
    if section.points:
        parts.append("<ul>" + "".join(f"<li>{escape(p)}</li>" for p in section.points) + "</ul>")
    if section.note:
        parts.append(f'<p class="asked">{escape(section.note)}</p>')
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>")
    for link, words in section.pictures:
        source = escape(quote(link))
        parts.append(f'<p><img src="{source}" alt="{escape(words)}" style="max-width: 100%"></p>')
    tone = "" if section.tone == "plain" else f' class="{section.tone}"'
    return f"<section{tone}>\n" + "\n".join(parts) + "\n</section>"


def _table(table: Table) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        drawn = (
            f'<{tag} class="n">{escape(c)}</{tag}>'
            if i in table.right
            else f"<{tag}>{escape(c)}</{tag}>"
            for i, c in enumerate(cells)
        )
        return "<tr>" + "".join(drawn) + "</tr>"

    head = row(table.header, "th")
    rows = "\n".join(row(cells, "td") for cells in table.rows)
    return (
        f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    )
