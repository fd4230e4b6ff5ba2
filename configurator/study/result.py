"""What a study hands back: the answer in words made from its numbers, table, curves, settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from configurator.probe.train import Run
from configurator.render.curves import Panel, panels_svg
from configurator.render.document import Document, Section, Table

__all__ = ["Study"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study.

    Attributes:
        study: its name on the command line.
        title: the same in words.
        question: what it asks.
        answer: the answer in a sentence.
        findings: the sentences behind it; every figure in them comes from ``rows``.
        limits: what it cannot tell.
        columns: the table's columns: the key in a row, and the heading.
        rows: one row an arm, plain values.
        panels: the picture.
        runs: every training run, with its curve.
        seeds: the seeds trained.
        settings: sizes, steps, data.
        environment: versions and machine.
        command: what makes it again.
        version: of this program.
    """

    study: str
    title: str
    question: str
    answer: str
    findings: tuple[str, ...]
    limits: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[dict[str, Any], ...]
    panels: tuple[Panel, ...]
    runs: tuple[Run, ...]
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    environment: dict[str, Any]
    command: str
    version: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values with the keys of the JSON document; the picture is left out."""
        values = {
            name: getattr(self, name)
            for name in (
                "study", "title", "question", "answer", "findings", "limits", "rows", "seeds",
                "settings", "environment", "command", "version",
            )
        }  # fmt: skip
        return values | {"runs": [_thrifty(run) for run in self.runs]}

    def to_svg(self) -> str:
        """The picture; raises ``MissingExtra`` without matplotlib."""
        return panels_svg(self.panels, title=self.title)

    def document(self) -> Document:
        """The study as a document for terminal, Markdown and HTML. No times: those differ."""
        keys = [key for key, _ in self.columns]
        cells = tuple(tuple(_cell(row[key]) for key in keys) for row in self.rows)
        numbers = tuple(
            i for i, key in enumerate(keys) if not all(isinstance(r[key], str) for r in self.rows)
        )
        settings = tuple((name, _cell(value)) for name, value in self.settings.items())
        made = ", ".join(f"{name} {value}" for name, value in self.environment.items())
        return Document(
            title=f"Study: {self.title}",
            answer=self.answer,
            asked=self.question,
            sections=(
                Section(
                    title="Figures",
                    table=Table(
                        header=tuple(heading for _, heading in self.columns),
                        rows=cells,
                        right=numbers,
                    ),
                    note=f"Mean over seeds {_seeds(self.seeds)}; lowest to highest in brackets.",
                ),
                Section(title="What they say", points=self.findings),
                Section(title="What they do not say", points=self.limits),
                Section(title="How it was made", facts=settings, note=made, code=self.command),
            ),
        )


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _cell(value: Any) -> str:
    """A value as a table shows it; a spread as ``0.123 [0.120 to 0.125]``."""
    if value is None:
        return "never"
    if isinstance(value, dict) and set(value) == {"mean", "low", "high"}:
        mean, low, high = (_cell(value[k]) for k in ("mean", "low", "high"))
        return mean if low == high else f"{mean} [{low} to {high}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(v) for v in value)
    return str(value)


def _thrifty(run: Run) -> dict[str, Any]:
    """A run with its curve as columns: a third of the size of a list of points."""
    names = ("step", "train_loss", "loss", "accuracy")
    curve = {name: [_digits(getattr(p, name)) for p in run.curve] for name in names}
    return asdict(run) | {"curve": curve, "seconds": round(run.seconds, 1)}


def _digits(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.5g}")
