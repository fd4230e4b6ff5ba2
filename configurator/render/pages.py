"""The rulebook as pages: every rule's docstring with what its place and examples add.

``outputs/rulebook.md`` is made here and compared by a test, so the rules and the book agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from configurator import rulebook
from configurator.catalog.evidence import cited
from configurator.core.rule import Rule, Severity
from configurator.files import write_whole

__all__ = ["CONCERNS", "concern", "facts", "rule_page", "rulebook_markdown", "rulebook_page",
           "write_rulebook"]  # fmt: skip

CONCERNS = {
    "shape": "The geometry itself: heads, widths, depth, vocabulary.",
    "kernels": "What attention kernels are compiled for, by device and library.",
    "memory": "Weights and cache against the target's memory.",
    "parallel": "Heads, latents and widths over devices.",
    "quality": "What published comparisons say a choice costs.",
    "serving": "What engines and decoding want.",
    "training": "What training a model of this shape wants.",
}
_INTRODUCTION = """\
Every rule is one file under `rules/`, and this book is made from them (`make pages`): the text is
the file's docstring, the example is what the rule says of its own failing case.

A verdict is *holds*, *broken* or *does not apply*. A broken **error** means no, and drops the
shape from the search; a **warning** costs something; **advice** is a preference. The evidence is
*strong*, *moderate*, *weak*, a *convention* of the field, or *measured here*. Whoever wants to
argue with a rule starts at its source."""


def concern(rule: Rule) -> str:
    """The folder that a rule lies in: ``shape``, ``kernels``, ..."""
    return rule.id.partition("/")[0]


def facts(rule: Rule) -> tuple[tuple[str, str], ...]:
    """What stands beside a page: severity, evidence, masking, required rules, the file."""
    found = [("Severity", str(rule.severity)), ("Evidence", str(rule.evidence))]
    if rulebook.masks(rule):
        found.append(("Search", "drops shapes that break it"))
    if rule.requires:
        found.append(("After", ", ".join(rule.requires)))
    found.append(("File", f"rules/{rule.id.replace('-', '_')}.py"))
    return tuple(found)


def spoken(rule: Rule) -> str:
    """What the rule says of its first failing example."""
    broken = rule.fails()
    return rule.says(broken[0]) if broken else ""


def rule_page(rule: Rule, level: int = 1) -> str:
    """One rule in Markdown, its id as a heading of ``level``; no trailing newline."""
    parts = [f"{'#' * level} {rule.id}", f"**{rule.title}.**"]
    parts.append(" · ".join(f"{label}: {text}" for label, text in facts(rule)))
    for heading, text in rulebook.sections(rule.page).items():
        parts.append(f"{'#' * (level + 1)} {heading}\n\n{_code(text)}")
    figures = cited(" ".join(rulebook.sections(rule.page).get("Source", "").split()))
    if figures:
        links = ", ".join(f"[{s.id}](evidence.md#{s.id})" for s in figures)
        parts.append(f"Figures: {links}")
    if spoken(rule):
        parts.append(f"For example: *{spoken(rule)}*")
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """Docstrings mark code with two backticks, Markdown with one."""
    return text.replace("``", "`")


def rulebook_markdown(rules: Iterable[Rule]) -> str:
    """The whole book: an introduction, a list by concern, then every page; sorted by id."""
    ordered = sorted(rules, key=lambda r: (list(CONCERNS).index(concern(r)), r.id))
    by_concern = [(name, list(group)) for name, group in groupby(ordered, key=concern)]
    parts = ["# Rulebook", f"{len(ordered)} rules in {len(by_concern)} concerns.", _INTRODUCTION]
    for name, group in by_concern:
        parts.append(f"## {name}\n\n{CONCERNS[name]}\n\n{_contents(group)}")
    for _, group in by_concern:
        parts += [rule_page(r, level=3) for r in group]
    return "\n\n".join(parts) + "\n"


def _contents(group: Sequence[Rule]) -> str:
    lines = ["| rule | severity | evidence | what holds |", "| --- | --- | --- | --- |"]
    for r in group:
        link = f"[{r.id.partition('/')[2]}](#{r.id.replace('/', '')})"
        mark = f"**{r.severity}**" if r.severity is Severity.ERROR else str(r.severity)
        lines.append(f"| {link} | {mark} | {r.evidence} | {_code(r.title)} |")
    return "\n".join(lines)


def rulebook_page() -> str:
    """The book of all rules."""
    return rulebook_markdown(rulebook.rules())


def write_rulebook(path: Path | str) -> Path:
    """Write the book to ``path``, whole or not at all, and return where."""
    target = Path(path)
    write_whole(target, rulebook_page())
    return target
