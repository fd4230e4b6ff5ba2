"""List design rules, search them, or show one rule's page with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import Format, Output

if TYPE_CHECKING:
    from configurator.core.rule import Rule
    from configurator.render.document import Document

__all__ = ["rules"]


def rules(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A rule's id to show; or words to search for."),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """List design rules, search them, or show one rule's page with its source.

    Words are looked for in ids, severities, strengths of evidence and pages. The concern may be
    left out of an id. The id or arXiv number of a study, as a rule's source names it, shows that
    study's figures.
    """
    from configurator import rulebook
    from configurator.catalog.evidence import studies
    from configurator.cli.lookup import search
    from configurator.cli.output import deliver, form
    from configurator.core.errors import UsageError

    chosen = form(format, output)
    every = {r.id: r for r in rulebook.rules()}
    study = next((s for s in studies() if text and text.casefold() in (s.id, s.arxiv)), None)
    if study is not None:
        from configurator.render.evidence import study_document

        deliver(study, lambda: study_document(study), chosen, output)
        return
    if text is None:
        found = list(every)
    else:
        try:
            found = [rulebook.rule(text).id]
        except UsageError:
            found = search("rule", text, {id_: _searchable(r) for id_, r in every.items()})
    if len(found) == 1:
        one = every[found[0]]
        deliver(_value(one), lambda: _page(one), chosen, output)
        return
    rows = [every[id_] for id_ in sorted(found)]
    value = {"rules": [_value(r) for r in rows]} if chosen == "json" else None
    deliver(value, lambda: _list(rows), chosen, output)


def _searchable(r: Rule) -> str:
    return " ".join((r.id, r.id.replace("-", " "), r.severity, r.evidence, r.page))


def _value(r: Rule) -> dict[str, Any]:
    """One rule as JSON: its declared values and its page by heading."""
    from configurator import rulebook
    from configurator.render.pages import concern, spoken

    return {
        "id": r.id,
        "concern": concern(r),
        "title": r.title,
        "severity": r.severity.value,
        "evidence": r.evidence.value,
        "masks": rulebook.masks(r),
        "requires": list(r.requires),
        "source": r.source,
        "studies": _studies(r),
        "page": {head.lower(): _plain(text) for head, text in rulebook.sections(r.page).items()},
        "example": spoken(r),
    }


def _list(rows: list[Rule]) -> Document:
    from configurator.render.document import Document, Section
    from configurator.render.pages import CONCERNS, concern

    groups: dict[str, list[Rule]] = {name: [] for name in CONCERNS}
    for r in rows:
        groups[concern(r)].append(r)
    sections = tuple(
        Section(
            title=name,
            facts=tuple(
                (r.id.partition("/")[2], f"{r.severity}, {r.evidence}: {_plain(r.title)}")
                for r in group
            ),
        )
        for name, group in groups.items()
        if group
    )
    note = Section(lead="`rules ID` shows a rule's page with its reasons, remedy and source.")
    return Document(title="Rules", answer=f"{len(rows)} rules", sections=(*sections, note))


def _page(r: Rule) -> Document:
    from configurator import rulebook
    from configurator.render.document import Document, Section
    from configurator.render.pages import facts, spoken

    parts = tuple(
        Section(title=head, lead=_plain(text)) for head, text in rulebook.sections(r.page).items()
    )
    example = Section(title="Says", lead=spoken(r)) if spoken(r) else Section()
    figures = ", ".join(_studies(r))
    shown = Section(title="Figures", lead=f"`rules STUDY` shows those of {figures}.")
    return Document(
        title=f"Rule {r.id}",
        answer=f"{_plain(r.title)}.",
        sections=(Section(facts=facts(r)), *parts, shown if figures else Section(), example),
    )


def _studies(r: Rule) -> list[str]:
    """Ids of the studies in the catalog that a rule's source names."""
    from configurator import rulebook
    from configurator.catalog.evidence import cited

    return [s.id for s in cited(_plain(rulebook.sections(r.page).get("Source", "")))]


def _plain(text: str) -> str:
    """A page's text as plain words: one paragraph, no code marks."""
    return " ".join(text.replace("``", "").split())
