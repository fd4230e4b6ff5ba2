"""What an audit says, in words and in order: the cache, where its bytes are, ranks, what fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from configurator.core.audit_report import Audit, GroupRow
from configurator.core.units import format_bytes, format_count, many
from configurator.render.content import rule_sections
from configurator.render.document import Document, Section, Table

__all__ = ["audit_document", "audits_document"]


def audit_document(audit: Audit, name: str) -> Document:
    """One model: its answer in a line, then the parts a reader looks for."""
    return Document(
        title=f"Audit of {name}",
        answer=_answer(audit),
        asked=_asked(audit),
        good=not audit.answer_is_no,
        sections=(
            _refusal(audit),
            _cache(audit),
            _groups(audit.layer_groups),
            _state(audit),
            _parameters(audit),
            _ranks(audit),
            _room(audit),
            Section(title="Note", points=audit.warnings, tone="warning"),
            *rule_sections(audit.rules),
        ),
    )


def audits_document(audits: Sequence[tuple[str, Audit]]) -> Document:
    """Several models side by side, at one question."""
    table = _side_by_side(audits)
    first = audits[0][1]
    smallest = min(audits, key=lambda pair: pair[1].kv_bytes_at_context)
    same = all(a.context == first.context for _, a in audits)
    at = f"at {many(first.context, 'token')}" if same else "each at its own longest context"
    return Document(
        title=f"Audit of {len(audits)} models",
        answer=f"{smallest[0]} keeps the smallest cache {at}: {_size(smallest[1])}",
        asked=f"{first.kv_dtype} cache, batch {first.batch:,}" + (f", {at}" if same else ""),
        good=not any(a.answer_is_no for _, a in audits),
        sections=(
            Section(
                table=table,
                note=(
                    "Bytes/token: what one more token of one sequence adds while windows have "
                    "room, and once they are full. Ranks: tensor-parallel sizes up to 16 that the "
                    "heads allow, with copies of KV heads."
                ),
            ),
            Section(
                title="Note",
                points=tuple(f"{name}: {text}" for name, a in audits for text in a.warnings),
                tone="warning",
            ),
        ),
    )


def _size(audit: Audit) -> str:
    return f"{format_bytes(audit.kv_bytes_at_context)} ({audit.kv_bytes_at_context:,} bytes)"


def heads(audit: Audit) -> str:
    """The heads in words; a range where layers differ."""
    if audit.projection == "none":
        return "no attention"
    q, kv, width = (_span(v) for v in (audit.n_heads, audit.n_kv_heads, audit.d_head))
    if isinstance(audit.d_head, dict):
        d = audit.d_head
        return (
            f"MLA: {q} heads, latent of {d['latent']} values, keys {d['qk']} and values {d['v']} "
            f"wide, {audit.cache_mode} cache"
        )
    if audit.projection == "MHA":
        return f"MHA: {q} heads of {width}"
    return f"{audit.projection}: {q} query and {kv} KV heads of {width}"


def _span(value: Any) -> str:
    if isinstance(value, list):
        low, high = min(value), max(value)
        return f"{low:,} to {high:,}" if low != high else f"{low:,}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _answer(audit: Audit) -> str:
    growth = f"{audit.kv_bytes_per_token:,} bytes a token"
    if audit.kv_bytes_per_token_past_window != audit.kv_bytes_per_token:
        growth += f" until windows are full, then {audit.kv_bytes_per_token_past_window:,}"
    if audit.kv_layers == 0 and not audit.kv_bytes_at_context:
        growth = "no cache that grows with the context"
    total = f"{_size(audit)} at {many(audit.context, 'token')}"
    batch = f" x {audit.batch:,} sequences" if audit.batch > 1 else ""
    return f"{heads(audit)}; {growth}; {total}{batch} in {audit.kv_dtype}"


def _asked(audit: Audit) -> str:
    parts = [
        audit.model_type or "no model_type",
        f"context {many(audit.context, 'token')}",
        f"batch {audit.batch:,}",
        f"cache {audit.kv_dtype}",
        f"tensor parallel {audit.tensor_parallel}",
    ]
    if audit.page_size > 1:
        parts.append(f"pages of {many(audit.page_size, 'token')}")
    if audit.target:
        parts.append(f"on {audit.target}")
    return ", ".join(parts)


def _refusal(audit: Audit) -> Section:
    said = []
    if not audit.tensor_parallel_allowed:
        ranks = audit.tensor_parallel
        said.append(f"Tensor parallel {ranks}: {audit.tp_verdicts[str(ranks)]}.")
    if audit.fits is False:
        said.append("What was asked does not fit.")
    return Section(lead=" ".join(said), tone="bad")


def _cache(audit: Audit) -> Section:
    facts = [
        ("Layers with a cache", f"{audit.kv_layers} of {audit.total_layers}"),
        ("One more token", f"{_exact(audit.kv_bytes_per_token)}"),
        (f"At {many(audit.context, 'token')}", _exact(audit.kv_bytes_at_context)),
    ]
    if audit.kv_bytes_per_token_past_window != audit.kv_bytes_per_token:
        facts.insert(2, ("Once windows are full", _exact(audit.kv_bytes_per_token_past_window)))
    if "cross_attention" in audit.kv_bytes_at_context_by_kind:
        parts = audit.kv_bytes_at_context_by_kind
        facts.append(("of it own tokens", _exact(parts["self_attention"])))
        facts.append(("of it the source", _exact(parts["cross_attention"])))
    full = audit.kv_bytes_if_windowed_layers_reserved_full
    if full is not None and full != audit.kv_bytes_at_context:
        facts.append(("If a server reserves windows in full", _exact(full)))
    if audit.kv_bytes_per_rank and audit.tensor_parallel > 1:
        facts.append(("On each rank", _exact(audit.kv_bytes_per_rank[0])))
    if audit.page_size > 1:
        facts.append(("One block", f"{_exact(audit.bytes_per_block)} on one rank"))
    return Section(title="Cache", facts=tuple(facts))


def _exact(value: int) -> str:
    return f"{value:,} bytes" if value < 1024 else f"{value:,} bytes ({format_bytes(value)})"


def _groups(rows: Sequence[GroupRow]) -> Section:
    total = sum(r.kv_bytes_at_context + r.state_bytes for r in rows)
    header = ("Layers", "What they keep", "Attention", "Tokens", "Bytes/token", "Cache + state",
              "Share", "Params")  # fmt: skip
    return Section(
        title="Where the bytes are",
        table=Table(
            header=header,
            rows=tuple(_group(r, total) for r in rows),
            right=(0, 3, 4, 5, 6, 7),
        ),
    )


def _group(row: GroupRow, total: int) -> tuple[str, ...]:
    held = row.kv_bytes_at_context + row.state_bytes
    if row.projection is None:
        attention = "-"
    elif row.projection == "MLA":
        attention = f"MLA {row.n_heads} heads"
    else:
        attention = f"{row.projection} {row.n_heads}/{row.n_kv_heads} x {row.d_head}"
        if row.v_head_dim != row.d_head:
            attention += f" (values {row.v_head_dim})"
    return (
        f"{row.layers:,}",
        row.kind,
        attention,
        f"{row.tokens:,}" if row.tokens else "-",
        f"{row.kv_bytes_per_token:,}" if row.kv_bytes_per_token else "-",
        format_bytes(held) if held else "-",
        f"{held / total:.1%}" if held and total else "-",
        format_count(row.params) if row.params else "-",
    )


def _state(audit: Audit) -> Section:
    state = audit.fixed_state_per_sequence
    if state is None:
        return Section()
    return Section(
        title="Fixed state of one sequence",
        facts=(
            ("Layers", f"{state['linear_layers']} ({', '.join(state['kinds'])})"),
            ("Recurrent values a layer", _span(state["recurrent_values_per_layer"])),
            ("Convolution channels a layer", _span(state["conv_channels_per_layer"])),
            ("In all, as transformers 5.24 keeps it", _exact(state["bytes_in_transformers_5_24"])),
        ),
    )


def _parameters(audit: Audit) -> Section:
    if audit.params_total is None:
        return Section(title="Parameters", lead="Unknown: the file does not state all sizes.")
    tied = "tied to the embedding" if audit.tied_embeddings else "a matrix of its own"
    facts = [("In all", f"{audit.params_total:,} ({format_count(audit.params_total)})")]
    active = audit.params_active_per_token
    if active is not None and active != audit.params_total:
        facts.append(("A token goes through", f"{active:,} ({format_count(active)})"))
    facts.append(("Without the embedding", f"{audit.params_without_embedding:,}"))
    facts.append(("Attention", f"{audit.attention_params_total:,}"))
    facts.append(("Output head", tied))
    return Section(title="Parameters", facts=tuple(facts))


def _ranks(audit: Audit) -> Section:
    if not audit.valid_tp:
        return Section()
    facts = [
        (name.replace("_", " "), value if isinstance(value, str) else ", ".join(map(str, value)))
        for name, value in audit.valid_tp.items()
    ]
    return Section(
        title="Tensor-parallel sizes from 1 to 16 that the heads allow", facts=tuple(facts)
    )


def _room(audit: Audit) -> Section:
    if audit.kv_budget_bytes is None:
        return Section()
    facts = [("Room for the cache", f"{_exact(audit.kv_budget_bytes)} on one rank")]
    if audit.weights_bytes is not None:
        stored = f"{_exact(audit.weights_bytes)} in {audit.weight_dtype}, over all devices"
        facts.append(("Weights", stored))
    facts.append((f"Longest context at batch {audit.batch:,}", _limit(audit.max_context, "token")))
    facts.append(
        (f"Largest batch at {many(audit.context, 'token')}", _limit(audit.max_batch, "sequence"))
    )
    return Section(title="What fits", facts=tuple(facts))


def _limit(value: int | None, what: str) -> str:
    if value is None:
        return "memory sets no limit"
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def _side_by_side(audits: Sequence[tuple[str, Audit]]) -> Table:
    """One row a model; columns that say nothing of any of them are left out."""
    columns: dict[str, list[str]] = {"Model": [name for name, _ in audits]}
    every = [audit for _, audit in audits]
    columns["Heads"] = [_short(a) for a in every]
    columns["Bytes/token"] = [f"{a.kv_bytes_per_token:,}" for a in every]
    if any(a.kv_bytes_per_token_past_window != a.kv_bytes_per_token for a in every):
        columns["Once full"] = [f"{a.kv_bytes_per_token_past_window:,}" for a in every]
    columns["Cache"] = [format_bytes(a.kv_bytes_at_context) for a in every]
    if any(a.kv_fixed_bytes_per_sequence for a in every):
        columns["Fixed"] = [_fixed(a) for a in every]
    columns["Params"] = [_count(a.params_total) for a in every]
    if any(a.params_active_per_token != a.params_total for a in every):
        columns["Active"] = [_count(a.params_active_per_token) for a in every]
    columns["Ranks"] = [_rank_list(a) for a in every]
    if any(a.kv_budget_bytes is not None for a in every):
        columns["Context"] = [_plain(a.max_context) for a in every]
        columns["Batch"] = [_plain(a.max_batch) for a in every]
    names = tuple(columns)
    left = ("Model", "Heads", "Ranks")
    return Table(
        header=names,
        rows=tuple(zip(*columns.values(), strict=True)),
        right=tuple(i for i, name in enumerate(names) if name not in left),
    )


def _short(audit: Audit) -> str:
    if audit.projection == "MLA":
        return f"MLA {_span(audit.n_heads)}"
    return f"{audit.projection} {_span(audit.n_heads)}/{_span(audit.n_kv_heads)}"


def _fixed(audit: Audit) -> str:
    fixed = sum(audit.kv_fixed_bytes_per_sequence.values())
    return format_bytes(fixed) if fixed else "-"


def _count(value: int | None) -> str:
    return "unknown" if value is None else format_count(value)


def _plain(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _rank_list(audit: Audit) -> str:
    ranks = audit.valid_tp.get("with_kv_replication") or audit.valid_tp.get("head_split") or []
    return " ".join(map(str, ranks)) or "-"
