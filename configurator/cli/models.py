"""List published models, search them, or show one with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from configurator.cli.options import Format, Output

if TYPE_CHECKING:
    from configurator.catalog.published import PublishedModel
    from configurator.render.document import Document

__all__ = ["models"]


def models(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A name to show; or words to search for."),
    ] = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """List published models, search them, or show one with its sources.

    Words are looked for in name, title, organisation, family, year and projection.
    """
    from configurator.catalog import published
    from configurator.cli.lookup import search
    from configurator.cli.output import deliver, form
    from configurator.core.errors import UsageError

    chosen = form(format, output)
    every = {m.name: m for m in published.models()}
    if text is None:
        found = list(every)
    else:
        try:
            found = [published.model(text).name]
        except UsageError:
            found = search("model", text, {n: _searchable(m) for n, m in every.items()})
    if len(found) == 1:
        one = every[found[0]]
        deliver(_known(one), lambda: _one(one), chosen, output)
        return
    rows = [every[n] for n in found]
    value = {"models": [_known(m) for m in rows]} if chosen == "json" else None
    deliver(value, lambda: _list(rows), chosen, output)


def _searchable(m: PublishedModel) -> str:
    kind = "moe mixture" if m.is_moe else "dense"
    return " ".join((m.name, m.title, m.org, m.family, str(m.year), m.projection, m.arch, kind))


def _known(m: PublishedModel) -> dict[str, Any]:
    """The figures that are known: the catalog's 0, empty text and None mean that one is not."""
    from configurator.render.json import plain

    every = {**plain(m), "total_params": m.total_params, "mixture": m.is_moe}
    return {k: v for k, v in every.items() if v not in (0, "", None, []) or v is False}


def _heads(m: PublishedModel) -> str:
    if m.projection == "MLA":
        return f"MLA {m.n_heads} x {m.qk_nope_head_dim}, rank {m.kv_lora_rank}"
    return f"{m.projection} {m.n_heads}/{m.n_kv_heads or '?'} x {m.d_head}"


def _list(rows: list[PublishedModel]) -> Document:
    from configurator.core.units import format_count
    from configurator.render.document import Document, Section, Table

    cells = tuple(
        (
            m.name,
            m.org,
            str(m.year),
            format_count(m.total_params) if m.total_params else "unknown",
            _heads(m),
            f"{m.d_model:,} x {m.n_layers}",
            f"{m.max_position:,}" if m.max_position else "unknown",
        )
        for m in rows
    )
    header = ("Name", "Organisation", "Year", "Params", "Heads", "d_model x layers", "Context")
    return Document(
        title="Published models",
        answer=f"{len(rows)} published models",
        sections=(Section(table=Table(header=header, rows=cells, right=(2, 3, 6))),),
    )


_BASIS = {
    "exact": "exact",
    "card": "rounded, from the model card",
    "name": "rounded, from the name",
    "computed": "counted here, none was published",
}


def _one(m: PublishedModel) -> Document:
    from configurator.core.units import format_count
    from configurator.render.document import Document, Section

    facts = [
        ("Organisation", f"{m.org}, {m.year}"),
        ("Kind", f"{m.arch}, {'mixture of experts' if m.is_moe else 'dense'}"),
        ("Heads", _heads(m)),
        ("Shape", f"d_model {m.d_model:,}, {m.n_layers} layers, vocabulary {m.vocab_size:,}"),
    ]
    if m.published_params:
        basis = _BASIS.get(m.params_basis, m.params_basis)
        facts.append(("Parameters", f"{m.published_params:,} ({basis})"))
    if m.counted_params:
        facts.append(("Counted here", f"{m.counted_params:,}"))
    if m.active_params:
        facts.append(("Active", format_count(m.active_params)))
    if m.max_position:
        facts.append(("Context", f"{m.max_position:,} tokens"))
    if m.kv_elements_per_token is not None:
        facts.append(("Cache", f"{m.kv_elements_per_token:,} elements per token past any window"))
    if m.sliding_window:
        local = f"{m.n_local_layers} of {m.n_layers} layers" if m.n_local_layers else "some layers"
        facts.append(("Window", f"{m.sliding_window:,} tokens in {local}"))
    return Document(
        title=f"Published model {m.name}",
        answer=m.title or m.name,
        sections=(
            Section(title="About", facts=tuple(facts)),
            Section(title="Note", lead=m.note),
            Section(title="Sources", points=m.sources),
        ),
    )
