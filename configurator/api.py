"""The public entrance: ``recommend``, ``check``, ``compare``; judge, search, rank, report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from configurator import __version__
from configurator.assemble import broken, option, recommendation, rule_reports
from configurator.budget import Frame
from configurator.complete import complete_shape
from configurator.core.audit_report import Audit
from configurator.core.case import Case, Device
from configurator.core.errors import UsageError
from configurator.core.initialization import wants_qk_norm
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.report import Option, Report, RuleReport
from configurator.core.shapes import check_groups
from configurator.question import Question, workload_of
from configurator.repeat import command, echo
from configurator.schema import GeometryRequest, Request
from configurator.search import shape_of
from configurator.target import describe, device_of, resolve
from configurator.unhonoured import unused

__all__ = ["Advice", "Checked", "Compared", "audit", "check", "compare", "recommend"]


@dataclass(frozen=True, slots=True)
class Advice:
    """A report with its rendered forms; its attributes are the report's own."""

    report: Report

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "report"), name)

    def to_markdown(self) -> str:
        """The report as Markdown, stable for a given request and version."""
        from configurator.render.content import recommendation as document
        from configurator.render.markdown import to_markdown

        return to_markdown(document(self.report))

    def to_json(self) -> str:
        """The report as one JSON document that validates against ``report.schema.json``."""
        from configurator.render.json import to_json

        return to_json(self.report)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A geometry judged: its costs, every rule that applies, and what was assumed."""

    request: dict[str, Any]
    option: Option
    rules: tuple[RuleReport, ...]
    warnings: tuple[str, ...]
    target: dict[str, Any]
    command: str
    version: str

    @property
    def ok(self) -> bool:
        """No rule of severity error is broken."""
        return not broken(self.rules, "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Kinds of attention side by side at one model width and one parameter budget."""

    request: dict[str, Any]
    rows: tuple[Option, ...]
    warnings: tuple[str, ...]
    target: dict[str, Any]
    command: str
    version: str


def recommend(request: Request) -> Advice:
    """Recommend a geometry for a budget, a length and a target, with its reasons.

    Raises:
        UsageError: the request contradicts itself, names an unknown target, or leaves no room.
    """
    _expect(request, Request)
    return Advice(Question(request).answer())


def _expect(request: object, *kinds: type) -> None:
    """Refuse what is no request, in words."""
    if not isinstance(request, kinds):
        names = " or a ".join(kind.__name__ for kind in kinds)
        raise UsageError(
            f"request is a {type(request).__name__}; give a {names}, such as Request(params='7B')"
            if Request in kinds
            else f"request is a {type(request).__name__}; give a {names}"
        )


def audit(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    target: str | None = None,
    memory: str | int | None = None,
    bandwidth: str | float | None = None,
    tflops: str | float | None = None,
    device: Device | None = None,
    **question: Any,
) -> Audit:
    """What a model's cache and parameters really are, and what fits on a target.

    ``source`` and the other keywords are those of :func:`configurator.interop.audit.audit`; a
    target is named or described as in a request, ``host`` included.

    Raises ``UsageError`` for a file, a target or a question that cannot be right.
    """
    from configurator.interop.audit import audit as audited

    if device is None:
        device = device_of(
            {"target": target, "memory": memory, "bandwidth": bandwidth, "tflops": tflops}
        )
    return audited(source, device=device, **question)


def geometry_case(request: GeometryRequest) -> tuple[Case, list[str]]:
    """The case a hand-given geometry means, and what was assumed to complete it.

    Raises ``UsageError`` for an unknown target or a split that the target cannot do.
    """
    warnings: list[str] = []
    device = resolve(
        request.target, memory=request.memory, bandwidth=request.bandwidth, tflops=request.tflops
    )
    workload = workload_of(request, device, warnings)
    shape = complete_shape(request, int(workload.source_len), warnings)
    warnings += unused(request, shape)
    if request.kv_lora_rank is not None and request.n_kv_heads is not None:
        warnings.append(
            f"n-kv-heads {request.n_kv_heads} was not used: MLA's heads share one latent"
        )
    if request.kv_lora_rank is not None and request.qk_nope_head_dim and request.d_head:
        warnings.append(
            f"d-head {request.d_head} was not used: qk-nope-head-dim {request.qk_nope_head_dim} is "
            "the width of MLA's keys without position"
        )
    return Case(shape=shape, workload=workload, device=device), warnings


def check(request: GeometryRequest) -> Checked:
    """Judge a geometry given by hand: its costs and every rule that applies.

    Raises ``UsageError`` for numbers that cannot be read as a geometry at all.
    """
    _expect(request, GeometryRequest)
    case, warnings = geometry_case(request)
    return Checked(
        request=echo(request, case.workload),
        option=option(case),
        rules=rule_reports(case),
        warnings=tuple(warnings),
        target=describe(case.device),
        command=command("check", request),
        version=__version__,
    )


def compare(request: GeometryRequest | Request) -> Compared:
    """MHA, GQA at each divisor, MQA and MLA side by side at one width and one budget.

    The feed-forward takes up what the attention frees, so that every row has the same parameters.

    Raises ``UsageError`` for what :func:`check` or :func:`recommend` refuse, and for query heads
    that are no multiple of the KV heads: the budget is that of the geometry given.
    """
    _expect(request, GeometryRequest, Request)
    if isinstance(request, Request):
        question, given = Question(request), None
        frame, workload, device = question.frames[0], question.workload, question.device
        first = question.answer().recommendation
        heads, width, warnings = first.n_heads, first.d_head, question.warnings
        window, full_every = request.window or 0, request.full_every
    else:
        case, warnings = geometry_case(request)
        check_groups(case.attention)
        frame, heads, width = _frame_of(case), case.attention.n_heads, recommendation(case).d_head
        workload, device, given = case.workload, case.device, case.attention
        window, full_every = request.window or 0, request.full_every
    rows = []
    wanted = getattr(request, "projection", None) or ("mha", "gqa", "mqa", "mla")
    for attention in _side_by_side(frame, heads, width, given):
        if attention.projection.lower() not in wanted:
            continue
        shape = shape_of(
            frame,
            attention,
            source_len=int(workload.source_len),
            window=window,
            full_every=full_every or 0,
        )
        rows.append(option(Case(shape=shape, workload=workload, device=device)))
    return Compared(
        request=echo(request, workload),
        rows=tuple(rows),
        warnings=tuple(warnings),
        target=describe(device),
        command=command("compare", request),
        version=__version__,
    )


def _frame_of(case: Case) -> Frame:
    rec = recommendation(case)
    moe = rec.feed_forward.kind == "moe"
    return Frame(
        params=rec.params_total,
        active_params=rec.params_active if moe else 0,
        d_model=rec.d_model,
        n_layers=rec.n_layers,
        vocab_size=rec.vocab_size,
        tied=rec.tied_embeddings,
        arch=rec.arch,
    )


def _side_by_side(frame: Frame, heads: int, width: int, given: Attention | None) -> list[Any]:
    """Every kind at these heads; MLA with the ranks that were given, else with usual ones."""
    divisors = [n for n in range(heads, 0, -1) if heads % n == 0]
    found: list[Any] = [
        GroupedQuery(
            d_model=frame.d_model,
            n_heads=heads,
            n_kv_heads=n,
            d_head=width,
            qk_norm=wants_qk_norm(frame.params, frame.arch),
        )
        for n in divisors
    ]
    if isinstance(given, Latent):
        found.append(given)
    elif frame.arch == "decoder":
        rope = max(width // 2, 16)
        found.append(
            Latent(
                d_model=frame.d_model,
                n_heads=heads,
                kv_lora_rank=4 * width,
                q_lora_rank=0,
                qk_nope_head_dim=width,
                qk_rope_head_dim=rope,
                v_head_dim=width,
            )
        )
    return found
