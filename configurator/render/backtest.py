"""A backtest as a document: scores, what they rest on, and whom the evidence favours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from configurator.render.backtest_models import differences, free_shape, model_by_model, percent
from configurator.render.document import Document, Section, Table

if TYPE_CHECKING:
    from typing import Protocol

    class Tested(Protocol):
        """What ``backtest`` returns, as far as it is drawn (it lies above this layer)."""

        @property
        def since(self) -> int: ...
        @property
        def asked(self) -> int: ...
        @property
        def sets(self) -> Mapping[str, Mapping[str, Any]]: ...
        @property
        def by_year(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]: ...
        @property
        def by_size(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]: ...
        @property
        def free_shape(self) -> Mapping[str, Any]: ...
        @property
        def models(self) -> tuple[Mapping[str, Any], ...]: ...
        @property
        def version(self) -> str: ...


__all__ = ["document"]

_MEASURES = {
    "projection": "Proj.",
    "d_head": "d_head",
    "n_heads": "Heads",
    "kv_equal": "KV",
    "kv_within_2": "KV 2x",
    "geometry": "All",
}
_HOW = (
    "Each model was asked about as its team would have: total parameters, width and depth as "
    "published, context (cut at 131,072), and a target by size (up to 4B one RTX 4090, up to 40B "
    "one H100, up to 120B eight H100, above eight H200 with that tensor parallelism; what exceeds "
    "nine tenths of a node takes as many nodes as it needs, with data-parallel attention). The "
    "advisor sees no name and no published geometry. A shape that a lab repeats counts once; plain "
    "means that every layer is full attention and nothing else. MLA has no KV heads to compare."
)
_LISTED = {
    "projection_and_kv": "Listed",
    "and_d_head": "+ d_head",
    "and_n_heads": "+ heads",
}


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def document(found: Tested) -> Document:
    """The whole backtest; ``answer`` is the score that matters most for a model of today."""
    recent, plain = found.sets["plain_2025"], found.sets["plain"]
    main = recent if recent["models"] else plain
    answer = (
        f"{main['title']}: projection {percent(main['ours']['projection'])} %, KV heads within a "
        f"factor of two {percent(main['ours']['kv_within_2'])} %, published choice listed "
        f"{percent(main['listed']['projection_and_kv'])} %"
    )
    part = len(found.models) < found.asked
    return Document(
        title="The advisor against published models",
        answer=answer,
        asked=f"{len(found.models)} decoders published since {found.since}"
        + (f" (a part of the run: {found.asked} were asked for)" if part else ""),
        sections=(
            Section(title="How", lead=_HOW),
            _scores(found),
            _listed(found),
            _principles(found),
            _field(found),
            _split("By year", found.by_year),
            _split("By size", found.by_size),
            _favours(found),
            *free_shape(found.free_shape),
            model_by_model(found.models),
            differences(found.models),
            Section(lead=f"mha-configurator {found.version}"),
        ),
    )


def _scores(found: Tested) -> Section:
    rows = []
    for s in found.sets.values():
        if not s["models"]:
            continue
        head = (s["title"], f"{s['shapes']:.0f}")
        rows.append((*head, "advisor", *(percent(s["ours"][m]) for m in _MEASURES)))
        wide = (_range(s["interval_over_labs"][m]) for m in _MEASURES)
        rows.append(("", "", "90 % over labs", *wide))
        rows.append(("", "", "rule of thumb", *(percent(s["thumb"][m]) for m in _MEASURES)))
    return Section(
        title="Scores",
        lead=(
            "Percent of shapes on which the first answer agrees with the published one; KV heads "
            "exactly, and within a factor of two."
        ),
        table=Table(
            header=("Set", "Shapes", "Who", *_MEASURES.values()),
            rows=tuple(rows),
            right=tuple(range(3, 9)),
        ),
        note=(
            "Rule of thumb: heads of 128 from a width of 2,048, of 64 below; heads fill the "
            "width; 8 KV heads. The interval resamples labs, 2,000 times."
        ),
    )


def _range(bounds: list[float]) -> str:
    return f"{100 * bounds[0]:.0f}-{100 * bounds[1]:.0f}"


def _listed(found: Tested) -> Section:
    rows = tuple(
        (
            s["title"],
            *(percent(s["listed"][k]) for k in _LISTED),
            percent(s["listed_in_five"]["projection_and_kv"]),
            percent(s["on_front"]),
            percent(s["on_front_or_listed"]),
        )
        for s in found.sets.values()
        if s["models"]
    )
    header = ("Set", *_LISTED.values(), "In five", "Front", "Either")
    return Section(
        title="Is the published choice offered?",
        lead=(
            "Percent of shapes whose projection and KV heads are among the answer and its five "
            "alternatives, then with the head width and the heads too; in the first five of "
            "these; or on the Pareto front of cache, decode time and expected loss."
        ),
        table=Table(header=header, rows=rows, right=(1, 2, 3, 4, 5, 6)),
    )


def _principles(found: Tested) -> Section:
    rows = []
    for s in found.sets.values():
        for name, gain in s["principles"].items():
            rows.append((s["title"], name, *(_points(gain[m]) for m in _MEASURES)))
    return Section(
        title="What each principle adds",
        lead=(
            "Percentage points of agreement gained over the same advisor with one principle "
            "replaced: P0 no limit by memory; P1 never MLA first; P2 MHA wherever it fits; P3 "
            "heads of 128 from 2,048 only; P4 heads that fill the width, exactly; P5 a flat 8."
        ),
        table=Table(
            header=("Set", "Principle", *_MEASURES.values()),
            rows=tuple(rows),
            right=tuple(range(2, 8)),
        ),
    )


def _field(found: Tested) -> Section:
    rows = []
    for s in found.sets.values():
        field = s["field"]
        if field["pairs"] < 20:
            continue
        rows.append(
            (s["title"], f"{field['pairs']}", *(percent(field["agree"][m]) for m in _MEASURES))
        )
        rows.append(("", "ceiling", *(_range(field["ceiling"][m]) for m in _MEASURES)))
    return Section(
        title="Where good teams disagree",
        lead=(
            "Pairs of shapes of different labs with totals within 35 %, widths within 15 %, "
            "sparsity within 2x and context within 4x, and how many percent chose alike. A rule "
            "that gives one answer for a budget can reach between that share and its square root: "
            "a score well above would mean memorising."
        ),
        table=Table(
            header=("Set", "Pairs", *_MEASURES.values()), rows=tuple(rows), right=tuple(range(2, 8))
        )
        if rows
        else None,
    )


def _split(title: str, found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Section:
    rows = []
    for name, parts in found.items():
        for part, s in parts.items():
            rows.append(
                (
                    name, part, f"{s['shapes']:.1f}",
                    *(percent(s["ours"][m]) for m in _MEASURES),
                    percent(s["listed"]["projection_and_kv"]),
                )
            )  # fmt: skip
    header = ("Set", title.removeprefix("By ").capitalize(), "Shapes", *_MEASURES.values())
    return Section(
        title=title,
        table=Table(
            header=(*header, "Listed"),
            rows=tuple(rows),
            right=tuple(range(2, 10)),
        ),
    )


def _favours(found: Tested) -> Section:
    sides = ("ours", "theirs", "neither", "cannot tell")
    rows = tuple(
        (
            s["title"],
            f"{s['evidence']['shapes']:.1f}",
            *(percent(s["evidence"][k]) for k in sides),
        )
        for s in found.sets.values()
        if s["models"]
    )
    return Section(
        title="Whom the evidence favours where we differ",
        lead=(
            "Percent of the shapes that differ. A side is favoured where it is ahead by more than "
            "the error in loss, decode time or cache and behind in none; neither: each is ahead "
            "in something; cannot tell: no difference is larger than its error."
        ),
        table=Table(
            header=("Set", "Shapes", *(s.capitalize() for s in sides)),
            rows=rows,
            right=(1, 2, 3, 4, 5),
        ),
    )
