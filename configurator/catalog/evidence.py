"""Published ablations of attention: what was compared, at which size, and by how much it differed.

One file is one study, or a part of one (``part_of``). A file holds ``comparison`` blocks, each
with a baseline, what was held equal, and a list of ``results``. Only figures that were read are
here; ``first_hand`` is false where they were read in somebody's summary of the study.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from configurator.catalog.store import load
from configurator.core.errors import UsageError, unknown

__all__ = ["Result", "Study", "cited", "evidence", "studies", "study"]

_LOWER = ("ppl", "loss", "cross-entropy", "flops")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One variant against its baseline.

    Args:
        id: stable, such as ``ainslie2023-004``.
        study: the study it belongs to.
        where: table, figure or section.
        model: size or kind of the model.
        trained: tokens or steps, as stated.
        control: what was held equal, and how.
        params_matched: parameters held equal; None where that is not known or not the question.
        variant, n_heads, n_kv_heads, d_head, kv_lora_rank: the geometry; 0: not stated.
        kv_elements: cached elements per token and layer; 0: not stated.
        metric, value, delta: what was measured; ``delta`` is ``value - baseline_value``.
        baseline, baseline_value: against what.
        verdict: in words, where no figure was published.
        note: what a reader should know.
    """

    id: str
    study: str
    where: str
    model: str
    metric: str
    variant: str
    baseline: str
    trained: str = ""
    control: str = ""
    params_matched: bool | None = None
    n_heads: int = 0
    n_kv_heads: int = 0
    d_head: int = 0
    kv_lora_rank: int = 0
    kv_elements: float = 0
    value: float | None = None
    baseline_value: float | None = None
    delta: float | None = None
    verdict: str = ""
    note: str = ""

    @property
    def lower_is_better(self) -> bool:
        """Losses, perplexities and costs; accuracies, scores and shares are better when higher."""
        metric = self.metric.casefold()
        return not metric.startswith("share") and any(word in metric for word in _LOWER)

    @property
    def worse_by(self) -> float | None:
        """How much worse than the baseline, in the metric's unit; negative: better."""
        if self.delta is None:
            return None
        return self.delta if self.lower_is_better else -self.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A paper or report, how it was read, and its results."""

    id: str
    title: str
    year: int
    read: str
    first_hand: bool
    results: tuple[Result, ...]
    arxiv: str = ""
    note: str = ""

    @property
    def source(self) -> str:
        """How to cite it in one phrase."""
        number = f", arXiv:{self.arxiv}" if self.arxiv else ""
        return f"{self.title} ({self.year}{number})"


def studies() -> list[Study]:
    """Every study of the catalog, by year and name."""
    return sorted(_studies().values(), key=lambda s: (s.year, s.id))


def study(name: str) -> Study:
    """One study by its id or its arXiv number.

    Raises:
        UsageError: an unknown one, with the nearest ids.
    """
    wanted = name.strip().casefold().removeprefix("arxiv:")
    for found in _studies().values():
        if wanted in (found.id, found.arxiv) and wanted:
            return found
    raise unknown("study", name, _studies())


def cited(text: str) -> list[Study]:
    """The studies that a source names by arXiv number or id, in the order of their years."""
    return [
        found for found in studies() if found.id in text or (found.arxiv and found.arxiv in text)
    ]


def evidence() -> list[Result]:
    """Every result of every study."""
    return [result for found in studies() for result in found.results]


@cache
def _studies() -> dict[str, Study]:
    documents = load("evidence")
    blocks: dict[str, list[dict[str, Any]]] = {}
    for stem, document in documents.items():
        blocks.setdefault(document.get("part_of", stem), []).extend(document["comparison"])
    found = {}
    for name, comparisons in blocks.items():
        head = {k: v for k, v in documents[name].items() if k != "comparison"}
        try:
            results = tuple(r for block in comparisons for r in _results(name, block))
            found[name] = Study(id=name, results=results, **head)
        except TypeError as error:
            why = str(error).partition("__init__() ")[2]
            raise UsageError(f"evidence/{name}.toml: {why}") from None
    return found


def _results(name: str, block: dict[str, Any]) -> list[Result]:
    shared = {key: value for key, value in block.items() if key != "results"}
    return [Result(study=name, **{**shared, **own}) for own in block["results"]]
