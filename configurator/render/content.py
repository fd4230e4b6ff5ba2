"""What a recommendation says, in which order: the answer, its cost, the rest of the field, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from configurator.core.report import (
    Initialization,
    LatencyReport,
    Measurement,
    Option,
    Precedent,
    Report,
    RuleReport,
    Sensitivity,
    TestHook,
    TrainingReport,
)
from configurator.core.units import format_bytes, format_count, format_seconds
from configurator.render.document import Document, Section, Table
from configurator.render.words import (
    bound_by,
    cache_total,
    decode_time,
    fits,
    heads,
    limits,
    model,
    penalty,
    short_heads,
)

__all__ = ["asked", "options_table", "rule_sections", "recommendation"]


def recommendation(report: Report) -> Document:
    """A report as a document; ``answer`` is its first line."""
    r = report.recommendation
    answer = heads(r)
    if not report.fits:
        answer = f"Does not fit. The nearest: {answer}"
    return Document(
        title=f"Attention geometry for {format_count(r.params_total)} parameters",
        answer=answer,
        asked=asked(report.request, report.target),
        good=report.fits,
        sections=(
            Section(
                title="What would fit, or come nearer",
                points=report.remedies,
                tone="plain" if report.fits else "bad",
            ),
            Section(title="Warnings", points=report.warnings, tone="warning"),
            _answer(report),
            _alternatives(report),
            Section(title="Why this one", points=report.why),
            _training(report.training),
            _sensitivity(report.sensitivity),
            *rule_sections(report.rules),
            _precedents(report.precedents),
            _measurements(report.measurements, report.verification),
            _initialization(report.initialization),
            _hook(report.test_hook),
            Section(title="This answer again", code=report.command),
            Section(lead=f"mha-configurator {report.version}"),
        ),
    )


def asked(request: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """The question as it was understood, in whole numbers."""
    parts = []
    for key in ("params", "active_params", "context", "source_len", "batch", "tensor_parallel"):
        value = request.get(key)
        if value is not None:
            parts.append(f"{key.replace('_', ' ')} {value:,}")
    for key in ("d_model", "n_layers", "vocab_size", "window", "full_every"):
        if request.get(key) is not None:
            parts.append(f"{key} {request[key]:,}")
    if request.get("memory"):
        parts.append(f"memory {format_bytes(request['memory'])} ({request['memory']:,} bytes)")
    for key in ("arch", "priority", "weight_dtype", "kv_dtype"):
        if request.get(key):
            parts.append(f"{key.replace('_', ' ')} {request[key]}")
    name = target.get("title") or target.get("name")
    if name:
        count = target.get("count", 1)
        parts.append(f"target {f'{count} x ' if count > 1 else ''}{name}")
    return ", ".join(parts)


def _answer(report: Report) -> Section:
    return Section(
        title="The answer",
        lead=_sentence(report.recommendation.reason),
        facts=cost_facts(_chosen(report), report.request),
    )


def cost_facts(option: Option, request: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The model, its cache, what fits, how fast it is and what it costs in loss."""
    context, batch = request.get("context", 0), request.get("batch", 1)
    facts = [
        ("Model", model(option.recommendation)),
        ("Cache", cache_total(option.cache, context, batch)),
        ("Memory", fits(option.memory, option.cache.fits)),
    ]
    if option.cache.bytes_total and option.cache.fits is not None:
        facts.append(("Limits", limits(option.cache, context, batch)))
    found = option.quality
    sources = f" [{'; '.join(found.sources)}]" if found.sources else ""
    return (*facts, ("Speed", _speed(option.latency)), ("Quality", found.statement + sources))


def _speed(found: LatencyReport) -> str:
    if found.decode_s is None and found.prefill_s is None:
        return f"unknown: {found.note or found.regime}"
    parts = []
    if found.decode_s is not None:
        parts.append(f"decode {decode_time(found)} a step")
    if found.prefill_s is not None:
        parts.append(f"prefill about {format_seconds(found.prefill_s)}")
    said = [", ".join(parts), f"bound by {bound_by(found.bound)}", found.regime, found.note]
    if not found.measured_class:
        said.append("no device of this kind was measured: take it as a rough guess")
    return "; ".join(s for s in said if s)


def _chosen(report: Report) -> Option:
    return Option(
        label=short_heads(report.recommendation), recommendation=report.recommendation,
        cache=report.cache, memory=report.memory, latency=report.latency,
        quality=report.quality, on_front=True, why_not="this answer",
    )  # fmt: skip


def _alternatives(report: Report) -> Section:
    if not report.alternatives:
        return Section()
    options = (_chosen(report), *report.alternatives)
    return Section(
        title="Alternatives",
        table=options_table(options, "Why not", lead=True),
        note=legend(options),
    )


def options_table(options: Sequence[Option], last: str, *, lead: bool = False) -> Table:
    """Candidates side by side: cache, step time and penalty, each with its error."""
    cached = any(o.cache.bytes_total for o in options)
    largest = any(o.cache.max_batch is not None for o in options)
    header = ["Option", *(("Per token", "Cache", "Decode step") if cached else ("Prefill",))]
    header += ["Penalty, nats", *(("Batch",) if largest else ())]
    rows = []
    for o in options:
        cells = [o.label or short_heads(o.recommendation)]
        if cached:
            sizes = (o.cache.bytes_per_token, o.cache.bytes_total)
            cells += [*map(format_bytes, sizes), decode_time(o.latency)]
        else:
            cells.append(format_seconds(o.latency.prefill_s))
        cells.append(penalty(o.quality, o.recommendation.projection))
        if largest:
            cells.append("-" if o.cache.max_batch is None else f"{o.cache.max_batch:,}")
        note = o.why_not
        if o.rules_broken:
            note = f"{note}; breaks {', '.join(o.rules_broken)}".lstrip("; ")
        rows.append((*cells, note))
    return Table(
        header=(*header, last),
        rows=tuple(rows),
        right=tuple(range(1, len(header))),
        lead=lead,
        prose=True,
    )


def legend(options: Sequence[Option]) -> str:
    """What the columns of :func:`options_table` mean, once, below it."""
    said = []
    if any(o.cache.bytes_total for o in options):
        said.append("Per token and cache: the whole model, counted once")
    if any(o.cache.max_batch is not None for o in options):
        said.append("batch: the largest that fits")
    said.append("penalty: expected loss against MHA at equal parameters, a tie inside the error")
    if any(o.quality.extrapolated for o in options):
        said.append("* extrapolated")
    return _sentence("; ".join(said))


def _training(found: TrainingReport | None) -> Section:
    """FLOPs and activations of training, and what the priority trades."""
    if found is None:
        return Section()
    parts = ", ".join(
        f"{name.replace('_', '-')} {format_bytes(value)}"
        for name, value in found.activation_bytes_per_token_per_layer.items()
    )
    return Section(
        title="In training",
        facts=(
            (
                "FLOPs",
                f"{format_count(found.flops_per_token)} per token forward and backward, "
                f"{found.attention_share:.0%} of them attention "
                f"({format_count(found.score_flops_per_token)} on scores); fused kernels redo "
                f"{format_count(found.recomputed_flops_per_token)}",
            ),
            (
                "Activations",
                f"{format_bytes(found.activation_bytes_per_token)} per token, "
                f"{format_bytes(found.activation_bytes_per_sequence)} a sequence, nothing "
                f"recomputed; one layer: {parts}; without fused attention "
                f"{format_bytes(found.unfused_bytes_per_token)} more per token",
            ),
            ("States", f"{format_bytes(found.states_bytes)} for Adam in mixed precision"),
        ),
        points=found.trades,
        note=f"Whole model, not split over devices. Sources: {'; '.join(found.sources)}.",
    )


def _sensitivity(found: Sequence[Sensitivity]) -> Section:
    return Section(title="What would change it", points=tuple(s.message for s in found))


def rule_sections(rules: Sequence[RuleReport]) -> tuple[Section, ...]:
    """Broken rules in words, then the ones that were checked and hold, with their sources."""
    broken = [r for r in rules if r.verdict == "broken"]
    held = [r for r in rules if r.verdict == "holds"]
    errors = any(r.severity == "error" for r in broken)
    advice = all(r.severity == "advice" for r in broken)
    points = tuple(
        f"{'' if advice else f'{r.severity}, '}{r.id}: {r.message} "
        f"[{r.evidence} evidence: {r.source}]"
        for r in broken
    )
    kept = Table(
        header=("Rule", "Says", "Evidence", "Source"),
        rows=tuple((r.id, r.message, r.evidence, r.source) for r in held),
    )
    return (
        Section(
            title="Advice" if advice else "Rules broken",
            points=points,
            tone="bad" if errors else "plain" if advice else "warning",
        ),
        Section(
            title=f"Rules that hold ({len(held)})" if held else "",
            table=kept if held else None,
            brief=f"{_by_concern(held)}. --format markdown lists them with their sources.",
        ),
    )


def _by_concern(rules: Sequence[RuleReport]) -> str:
    counts: dict[str, int] = {}
    for rule in rules:
        concern = rule.id.partition("/")[0]
        counts[concern] = counts.get(concern, 0) + 1
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _precedents(found: Sequence[Precedent]) -> Section:
    rows = tuple(
        (
            f"{p.id} ({p.org}, {p.year})",
            format_count(p.params_total),
            f"{p.projection} {p.n_heads}/{p.n_kv_heads} x {p.d_head}",
            f"{p.d_model:,} x {p.n_layers}",
            p.difference,
        )
        for p in found
    )
    header = ("Published model", "Params", "Heads", "d_model x layers", "Difference")
    if not rows:
        return Section()
    return Section(
        title="Nearest published models (illustrations, not predictors)",
        table=Table(header=header, rows=rows, right=(1,)),
        note="`mha-configurator models NAME` shows one with its sources.",
    )


def _measurements(found: Sequence[Measurement], sentence: str = "") -> Section:
    tried = Counter((m.case, m.phase) for m in found)

    def cell(m: Measurement) -> tuple[str, ...]:
        size = f"{m.cache_bytes_predicted:,}"
        if m.cache_bytes_measured is not None:
            same = m.cache_bytes_measured == m.cache_bytes_predicted
            size += " exact" if same else f", measured {m.cache_bytes_measured:,}"
        share = "-" if m.share_of_bandwidth is None else f"{m.share_of_bandwidth:.0%}"
        return (
            f"{m.case} {m.phase}", f"{tried[m.case, m.phase]}: {m.formulation or '-'}", size,
            format_seconds(m.predicted_s), format_seconds(m.measured_s), share, m.status,
        )  # fmt: skip

    header = ("Case", "Best of", "Cache bytes", "Predicted", "Measured", "Bandwidth", "Status")
    rows = tuple(cell(m) for m in _fastest(found))
    return Section(
        title="Measured here" if rows else "",
        lead=sentence,
        table=Table(header=header, rows=rows, right=(2, 3, 4, 5)) if rows else None,
    )


def _fastest(found: Sequence[Measurement]) -> list[Measurement]:
    """Of each case's formulations the fastest whose timing counts, or the first where none does."""
    best: dict[tuple[str, str], Measurement] = {}
    for m in found:
        kept = best.setdefault((m.case, m.phase), m)
        counts = m.status == "ok" and m.measured_s is not None
        if counts and (kept.status != "ok" or (kept.measured_s or 0.0) > (m.measured_s or 0.0)):
            best[m.case, m.phase] = m
    return list(best.values())


def _initialization(found: Initialization) -> Section:
    columns = ("recommended", "xavier", "kaiming", "kaiming_linear", "residual_scaled")
    names = list(dict.fromkeys(n for c in columns for n in getattr(found, c)))
    rows = tuple(
        (n, *(f"{v:.5f}" if (v := getattr(found, c).get(n)) is not None else "-" for c in columns))
        for n in names
    )
    sources = f" Sources: {'; '.join(found.sources)}." if found.sources else ""
    return Section(
        title="Initialization (standard deviations)",
        lead=_sentence(found.advice) + sources,
        table=Table(
            header=("Matrix", "Use", "Xavier", "Kaiming relu", "Kaiming linear", "By depth"),
            rows=rows,
            right=(1, 2, 3, 4, 5),
        ),
    )


def _sentence(text: str) -> str:
    """The text with a capital and a full stop, whoever wrote it."""
    return text[:1].upper() + text[1:].rstrip(". ") + "."


def _hook(hook: TestHook) -> Section:
    return Section(
        title=f"Test hook: {hook.task}",
        lead=f"{_sentence(hook.description)} A trained {hook.layers}-layer version must reach "
        f"{hook.threshold * 100:.0f} %; control: {hook.control}.",
        code=hook.command,
    )
