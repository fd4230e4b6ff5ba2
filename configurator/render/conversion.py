"""Advice on converting a model, as a document: the verdict, the changes, how, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from configurator.core.units import format_count
from configurator.render.content import asked, cost_facts, options_table
from configurator.render.document import Document, Section, Table
from configurator.render.words import short_heads

if TYPE_CHECKING:
    from typing import Protocol

    from configurator.core.report import Option

    class Advised(Protocol):
        """What ``convert`` returns, as far as it is drawn (it lies above this layer)."""

        @property
        def source(self) -> str: ...
        @property
        def now(self) -> Option: ...
        @property
        def smaller_cache(self) -> Option | None: ...
        @property
        def changes(self) -> tuple[Any, ...]: ...
        @property
        def verdict(self) -> str: ...
        @property
        def reason(self) -> str: ...
        @property
        def chosen(self) -> str: ...
        @property
        def steps(self) -> tuple[str, ...]: ...
        @property
        def request(self) -> Mapping[str, Any]: ...
        @property
        def target(self) -> Mapping[str, Any]: ...
        @property
        def warnings(self) -> tuple[str, ...]: ...
        @property
        def command(self) -> str: ...
        @property
        def version(self) -> str: ...


__all__ = ["document"]


def document(found: Advised) -> Document:
    """The verdict first, then the model, its conversions, how to, and published losses."""
    names = {"worth it": f"worth it: {found.chosen}", "depends": f"depends: {found.chosen} first"}
    heads = short_heads(found.now.recommendation)
    return Document(
        title=f"Converting {found.source}",
        answer=f"{heads}: {names.get(found.verdict, found.verdict)}",
        asked=asked(found.request, found.target),
        good=found.verdict != "not enough",
        sections=(
            Section(title="Why", lead=_sentence(found.reason)),
            Section(title="Warnings", points=found.warnings, tone="warning"),
            Section(title="As it is", facts=cost_facts(found.now, found.request)),
            _costs(found),
            _changes(found),
            Section(title=f"How, to {found.chosen}" if found.steps else "", points=found.steps),
            _losses(found),
            Section(title="This answer again", code=found.command),
            Section(lead=f"mha-configurator {found.version}"),
        ),
    )


def _costs(found: Advised) -> Section:
    if not found.changes:
        return Section()
    options = [found.now]
    if found.smaller_cache is not None:
        options.append(found.smaller_cache)
    options += [c.option for c in found.changes]
    notes = ["as it is", *(["fp8 cache, no training"] if found.smaller_cache else [])]
    notes += [f"{c.cache_share:.0%} of the cache" for c in found.changes]
    table = options_table(options, "Change")
    rows = tuple((*row[:-1], note) for row, note in zip(table.rows, notes, strict=True))
    return Section(
        title="Conversions, side by side",
        table=Table(header=table.header, rows=rows, right=table.right, lead=True),
        note=(
            "Penalty: expected loss of such heads trained from the start against MHA; a "
            "conversion does no better. Feed-forward untouched."
        ),
    )


def _changes(found: Advised) -> Section:
    rows = tuple(
        (
            c.name,
            f"{1 - c.cache_share:.1%}",
            "unknown" if c.speedup is None else f"{c.speedup:.2f}x",
            _range(c.trained_share, lambda v: f"{v:.1%}"),
            _range(c.trained_tokens, format_count),
            f"{c.trained_flops[1]:.1e}",
            f"{c.from_scratch_nats:+.3f} +- {c.from_scratch_error_nats:.3f}",
        )
        for c in found.changes
    )
    header = (
        "Change",
        "Cache saved",
        "Decode",
        "Share trained",
        "Tokens",
        "FLOPs",
        "From scratch, nats",
    )
    return Section(
        title="What it takes",
        table=Table(header=header, rows=rows, right=tuple(range(1, 7))) if rows else None,
        note=(
            "From scratch: what such heads cost when trained from the start, at equal "
            "parameters. Tokens and FLOPs for an original training of 20 tokens a parameter; "
            "models that saw more need in proportion."
        ),
    )


def _range(pair: tuple[float, float], show: Any) -> str:
    low, high = pair
    return str(show(low)) if low == high else f"{show(low)} to {show(high)}"


def _losses(found: Advised) -> Section:
    """Published results for the change in question, or for all where none is."""
    shown = [c for c in found.changes if c.name == found.chosen] or list(found.changes)
    points = dict.fromkeys(f"{p.says} [{p.id}: {p.source}]" for c in shown for p in c.published)
    return Section(
        title="What conversions lost" if points else "",
        points=tuple(points),
        note="`mha-configurator rules STUDY` shows a study's figures.",
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(". ") + "."
