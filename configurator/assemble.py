"""From one case of plain numbers to the blocks of a report: geometry, cache, memory, time, loss."""

from __future__ import annotations

import math

from configurator.core import cost
from configurator.core.case import Case
from configurator.core.columns import as_float
from configurator.core.dtypes import cache_type
from configurator.core.kernels import choose
from configurator.core.kinds.mla import Latent
from configurator.core.quality import ERROR_NATS, penalty
from configurator.core.report import (
    CacheReport,
    FeedForwardReport,
    LatencyReport,
    MemoryReport,
    Option,
    QualityReport,
    Recommendation,
    RuleReport,
)
from configurator.core.rule import Severity, Status
from configurator.core.step import step
from configurator.rulebook import judge

__all__ = ["cache_report", "label", "latency_report", "option", "quality_report", "rule_reports"]

QUALITY_SOURCES = (
    "Zadouri et al. 2025 (arXiv 2505.21487; evidence zadouri-2025)",
    "Brandon et al. 2024 (arXiv 2405.12981; evidence brandon-2024)",
    "Shazeer 2019 (arXiv 1911.02150; evidence shazeer-2019)",
)
LATENT_SOURCES = (
    "DeepSeek-V2 2024 (arXiv 2405.04434; evidence deepseek-v2-2024)",
    QUALITY_SOURCES[0],
)


def label(case: Case) -> str:
    """A short name: ``GQA 32/8 x 128``, ``MLA 32 x 128, rank 512``."""
    a = case.attention
    if isinstance(a, Latent):
        return f"MLA {a.n_heads} x {a.qk_nope_head_dim}, rank {a.kv_lora_rank}"
    heads = f"{a.n_heads}/{a.kv_heads}"
    return f"{a.projection} {heads} x {a.d_head}"  # type: ignore[attr-defined]


def recommendation(case: Case, reason: str = "") -> Recommendation:
    """The geometry inside its full shape."""
    shape, a, ff = case.shape, case.attention, case.shape.feed_forward
    latent = a if isinstance(a, Latent) else None
    windows = [g.scope for g in shape.groups if g.scope.kind == "window"]
    full = sum(g.count for g in shape.groups if g.scope.kind == "full")
    if ff is None:
        raise ValueError("a shape without a feed-forward cannot be recommended")
    return Recommendation(
        projection=a.projection,
        n_heads=a.n_heads,
        n_kv_heads=a.kv_heads,
        d_head=latent.qk_nope_head_dim if latent else a.d_head,  # type: ignore[attr-defined]
        d_model=shape.d_model,
        n_layers=shape.n_layers,
        d_ff=ff.d_ff,
        feed_forward=FeedForwardReport(
            kind=ff.kind,
            d_ff=ff.d_ff,
            gated=ff.gated,
            n_experts=ff.n_experts,
            experts_per_token=ff.experts_per_token,
            shared_d_ff=ff.shared_d_ff,
        ),
        vocab_size=shape.vocab_size,
        tied_embeddings=shape.tied,
        kv_lora_rank=latent.kv_lora_rank if latent else 0,
        q_lora_rank=latent.q_lora_rank if latent else 0,
        qk_nope_head_dim=latent.qk_nope_head_dim if latent else 0,
        qk_rope_head_dim=latent.qk_rope_head_dim if latent else 0,
        v_head_dim=a.v_width,  # type: ignore[attr-defined]
        bias=a.bias,  # type: ignore[attr-defined]
        qk_norm=bool(getattr(a, "qk_norm", False)),
        window=windows[0].size if windows else 0,
        full_every=_period(int(shape.n_layers), int(full)) if windows and full else 0,
        arch=shape.arch,
        params_total=cost.params_total(shape),
        params_active=cost.active_params(shape),
        reason=reason,
    )


def _period(layers: int, full: int) -> int:
    """Every which layer keeps the whole context, where ``full`` of them do.

    The period that gives as many, as Gemma 3's 6 gives 5 of 34; else the nearest one.
    """
    period = layers // full
    return period if layers // period == full else round(layers / full)


def cache_report(case: Case) -> CacheReport:
    """The logical cache, and on a named target what fits."""
    work, groups = case.workload, case.shape.groups
    fixed = cost.fixed_bytes_per_sequence(case)
    total = cost.cache_bytes(case)
    cross = fixed.get("cross_attention", 0) * work.batch
    caching = any(g.scope.caches for g in groups)
    fits = longest = most = None
    if case.device is not None:
        fits = bool(cost.memory(case).fits)
        longest = cost.max_context(case) if caching else None
        most = int(cost.max_batch(case)) if caching else None
    return CacheReport(
        bytes_per_token_per_layer_fp16=(
            case.attention.cache_bytes(cache_type("fp16")) if caching else 0
        ),
        bytes_per_token=cost.cache_bytes_per_token(case),
        bytes_per_token_past_window=cost.cache_bytes_per_token_past_window(case),
        bytes_total=total,
        bytes_per_sequence=total // work.batch,
        rank_bytes=cost.cache_bytes_per_rank(case) // work.batch * cost.sequences_per_replica(case),
        self_attention_bytes=total - cross,
        cross_attention_bytes=cross,
        fits=fits,
        max_context=None if longest is None or longest < 0 else longest,
        max_batch=None if most is None or most < 0 else most,
        kv_dtype=work.kv.name,
    )


def memory_report(case: Case) -> MemoryReport:
    """Weights, cache and reserve against capacity, summed over the devices."""
    if case.device is None:
        return MemoryReport(
            weights_bytes=cost.weights_bytes_per_device(case),
            cache_bytes=cost.cache_bytes(case),
            reserve_bytes=None,
            capacity_bytes=None,
        )
    m = cost.memory(case)
    return MemoryReport(
        weights_bytes=m.weights_bytes,
        cache_bytes=m.cache_bytes,
        reserve_bytes=m.reserve_bytes,
        capacity_bytes=m.capacity_bytes,
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def latency_report(case: Case) -> LatencyReport:
    """A decode step and a prefill of the whole model; unknown without a device or a rate."""
    if case.device is None:
        return LatencyReport(
            decode_s=None,
            prefill_s=None,
            bound="unknown",
            regime="no target was named, so nothing is predicted",
            error=None,
        )
    s = step(case)
    decodes = case.shape.arch != "encoder"
    known = math.isfinite(s.decode_s)
    parts = {name: v for name, v in s.parts.items() if math.isfinite(v)}
    _, used = case.device.rate(case.workload.weight_dtype)
    # Which kernel is assumed can matter more than the geometry: a library that cannot split a
    # context or absorb a latent takes many times as long.
    timed = known and decodes and s.confidence != "unmeasured"
    kernel = choose(case.attention, case.device, case.workload.kv.k.name).title if timed else ""
    said = [f"assumes {kernel}"] if kernel else []
    if used and used != case.workload.weight_dtype:
        said.append(
            f"{case.device.name} has no {case.workload.weight_dtype} rate; {used} is used instead"
        )
    note = "; ".join(said)
    regime, ranks = s.regime, int(case.workload.tensor_parallel)
    if not decodes:
        regime = "an encoder has no decode step: all of it is prefill"
    elif isinstance(case.attention, Latent):
        regime = regime.replace("KV heads change", "the latent's size changes")
    elif 1 < case.attention.kv_heads == ranks:
        regime += f"; fewer than {ranks} would be copied on {ranks} ranks"
    elif case.attention.kv_heads < ranks:
        regime += f"; each is copied on {ranks // case.attention.kv_heads} ranks"
    return LatencyReport(
        decode_s=_known(s.decode_s) if decodes else None,
        prefill_s=_known(s.prefill_s),
        bound=s.bound if decodes else "compute",
        regime=regime,
        error=max(s.error_high - 1.0, 1.0 - s.error_low) if known else None,
        low=s.error_low if known else None,
        high=s.error_high if known else None,
        attention_s=parts.get("attention") if decodes else None,
        parts_s=parts if decodes else {},
        measured_class=s.confidence != "unmeasured",
        note=note,
    )


def quality_report(case: Case) -> QualityReport:
    """Expected loss against MHA at equal parameters, with its band and what that means."""
    a = case.attention
    found = penalty(a)
    nats, error, x = float(found.nats), float(found.error), float(as_float(found.cached_width))
    extrapolated = bool(found.extrapolated)
    if a.projection == "MHA":
        text = "the reference: MHA of the same parameters"
    elif nats <= ERROR_NATS:
        text = (
            f"expected loss is inside the evidence's error of MHA's: "
            f"+{nats:.3f} +- {error:.3f} nats a token at equal parameters"
        )
    else:
        text = (
            f"expected to cost +{nats:.3f} +- {error:.3f} nats a token against MHA at equal "
            "parameters"
        )
    if extrapolated:
        text += "; extrapolated: little was measured there"
    return QualityReport(
        penalty_nats=nats,
        error_nats=error,
        cached_width=x,
        statement=text,
        extrapolated=extrapolated,
        sources=LATENT_SOURCES if isinstance(a, Latent) else QUALITY_SOURCES,
    )


def rule_reports(case: Case, *, all_of_them: bool = False) -> tuple[RuleReport, ...]:
    """Rules that apply, broken ones first, errors before warnings before advice."""
    rank = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.ADVICE: 2}
    verdicts = [v for v in judge(case) if all_of_them or v.status is not Status.DOES_NOT_APPLY]
    verdicts.sort(key=lambda v: (v.status is not Status.BROKEN, rank[v.severity], v.id))
    return tuple(
        RuleReport(
            id=v.id,
            severity=v.severity.value,
            verdict=v.status.value,
            message=v.message,
            source=v.source,
            evidence=v.evidence.value,
        )
        for v in verdicts
    )


def broken(rules: tuple[RuleReport, ...], *severities: str) -> tuple[RuleReport, ...]:
    """Broken rules, of the given severities or of all."""
    return tuple(
        r for r in rules if r.verdict == "broken" and (not severities or r.severity in severities)
    )


def option(case: Case, *, why_not: str = "", on_front: bool = False, name: str = "") -> Option:
    """One candidate with all its costs."""
    return Option(
        label=name or label(case),
        recommendation=recommendation(case),
        cache=cache_report(case),
        memory=memory_report(case),
        latency=latency_report(case),
        quality=quality_report(case),
        on_front=on_front,
        why_not=why_not,
        rules_broken=tuple(r.id for r in broken(rule_reports(case), "error", "warning")),
    )
