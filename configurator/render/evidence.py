"""Published ablations as pages: one study with its figures, and all of them in one book."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from configurator.catalog.evidence import Result, Study, studies
from configurator.render.document import Document, Section, Table
from configurator.render.markdown import to_markdown

__all__ = ["evidence_page", "study_document"]

_INTRODUCTION = (
    "Published comparisons of attention, as read: what was compared, at which size, what was held "
    "equal, and by how much it differed. They are the catalog's files under "
    "`configurator/catalog/evidence/`; this book is made from them (`make pages`). "
    "`mha-configurator rules STUDY` prints one study; `benchmarks/fit_quality.py` fits the loss of "
    "fewer KV heads from them. Second hand means that the figures were read in somebody's summary."
)


def study_document(study: Study) -> Document:
    """One study: how it was read, then each comparison with its results."""
    hand = "first hand" if study.first_hand else "second hand"
    about = [("Read", f"{study.read} ({hand})")]
    if study.arxiv:
        about.append(("arXiv", study.arxiv))
    if study.note:
        about.append(("Note", study.note))
    return Document(
        title=study.id,
        answer=f"{study.title}, {study.year}",
        sections=(Section(facts=tuple(about)), *_comparisons(study.results)),
    )


def _comparisons(results: Sequence[Result]) -> Iterable[Section]:
    def block(r: Result) -> tuple[str, ...]:
        return (r.where, r.metric, r.baseline, r.control, r.trained)

    for (where, metric, baseline, control, trained), group in groupby(results, key=block):
        rows = list(group)
        said = [f"{metric} against {baseline}", control, f"trained on {trained}" if trained else ""]
        yield Section(
            title=where,
            lead="; ".join(s for s in said if s) + ".",
            table=Table(
                header=("Result", "Model", "Variant", "Cached elements", "Value", "Difference"),
                rows=tuple(_row(r) for r in rows),
                right=(3, 4, 5),
            ),
            points=tuple(f"{r.id}: {r.note}" for r in rows if r.note),
        )


def _row(r: Result) -> tuple[str, ...]:
    value = "-" if r.value is None else f"{r.value:g}"
    difference = "-" if r.delta is None else f"{r.delta:+g}"
    if r.value is None and r.verdict:
        value = r.verdict
    return (
        r.id, r.model, r.variant, f"{r.kv_elements:g}" if r.kv_elements else "-", value, difference
    )  # fmt: skip


def evidence_page() -> str:
    """All studies in Markdown, by year: a table of contents, then a chapter each."""
    every = studies()
    count = sum(len(s.results) for s in every)
    lines = ["| study | title | year | results | read |", "| --- | --- | ---: | ---: | --- |"]
    lines += [
        f"| [{s.id}](#{s.id}) | {s.title} | {s.year} | {len(s.results)} | "
        f"{'first hand' if s.first_hand else 'second hand'} |"
        for s in every
    ]
    parts = ["# Evidence", f"{count} results of {len(every)} studies.", _INTRODUCTION]
    parts += ["\n".join(lines), *(_chapter(s) for s in every)]
    return "\n\n".join(parts) + "\n"


def _chapter(study: Study) -> str:
    """A study's document one level down; the anchor is its id, dots kept."""
    text = to_markdown(study_document(study)).rstrip("\n")
    lowered = "\n".join(f"#{line}" if line.startswith("#") else line for line in text.split("\n"))
    return f'<a id="{study.id}"></a>\n\n{lowered}'
