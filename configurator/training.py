"""What ``--priority training`` weighs: what a training step costs, and what is traded for it."""

from __future__ import annotations

from dataclasses import replace

from configurator.assemble import label
from configurator.core import cost
from configurator.core.case import Case
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.quality import penalty
from configurator.core.report import TrainingReport
from configurator.core.training import (
    STATE_BYTES_PER_PARAM,
    layer_activation_bytes,
    training_flops,
)
from configurator.core.units import format_bytes

__all__ = ["training_report"]

_SOURCES = (
    "Korthikanti et al. 2022 (arXiv 2205.05198), what a backward pass keeps",
    "Dao 2023 (arXiv 2307.08691), fused attention forward and backward",
    "Rajbhandari et al. 2020 (arXiv 1910.02054), 16 bytes of states per parameter",
)


def training_report(case: Case, balanced: Case | None = None) -> TrainingReport:
    """The costs of training ``case``, and what it trades.

    ``balanced`` is what the balanced priority would have answered at the same budget.
    """
    flops = training_flops(case)
    tokens = case.workload.context
    per_layer = {k: float(v) for k, v in layer_activation_bytes(case.shape.main, tokens).items()}
    kept = _activations(case)
    total = float(flops.total)
    return TrainingReport(
        flops_per_token=total,
        attention_flops_per_token=float(flops.attention),
        score_flops_per_token=float(flops.scores),
        recomputed_flops_per_token=float(flops.recomputed),
        attention_share=float(flops.attention) / total,
        activation_bytes_per_token=kept,
        activation_bytes_per_token_per_layer=per_layer,
        activation_bytes_per_sequence=kept * tokens,
        unfused_bytes_per_token=_activations(case, fused=False) - kept,
        states_bytes=STATE_BYTES_PER_PARAM * int(cost.params_total(case.shape)),
        trades=tuple(_trades(case, balanced)),
        sources=_SOURCES,
    )


def _activations(case: Case, *, fused: bool = True) -> float:
    """Bytes per token over all layers."""
    return sum(
        float(g.count * sum(layer_activation_bytes(g, case.workload.context, fused=fused).values()))
        for g in case.shape.groups
        if g.weights
    )


def _trades(case: Case, balanced: Case | None) -> list[str]:
    found = [_against_all_heads(case)]
    if balanced is not None and case.shape.arch != "encoder":
        found.append(_against_balanced(case, balanced))
    return [text for text in found if text]


def _against_all_heads(case: Case) -> str:
    """What sharing (or compressing) keys and values saves a training step: little."""
    a = case.attention
    if a.projection == "MHA":
        return ""
    width = a.qk_nope_head_dim if isinstance(a, Latent) else a.d_head  # type: ignore[attr-defined]
    mha = GroupedQuery(d_model=a.d_model, n_heads=a.n_heads, n_kv_heads=a.n_heads, d_head=width)
    other = _with(case, mha)
    mine, theirs = training_flops(case), training_flops(other)
    flops = float(mine.attention) / float(theirs.attention) - 1.0
    of_all = float(mine.attention - theirs.attention) / float(theirs.total)
    kept = _activations(case) / _activations(other) - 1.0
    return (
        f"Against MHA of as many heads in the same feed-forward: attention's FLOPs "
        f"{_signed(flops)} ({_signed(of_all)} of all), activations {_signed(kept)}. At equal "
        "parameters the feed-forward takes up what the FLOPs save, so fewer KV heads hardly speed "
        "up training; they pay at inference."
    )


def _against_balanced(case: Case, balanced: Case) -> str:
    mine, theirs = label(case), label(balanced)
    if mine == theirs:
        return f"Priority balanced answers the same heads, {theirs}: nothing is traded."
    cache = cost.cache_bytes(case) / max(cost.cache_bytes(balanced), 1)
    loss = float(penalty(balanced.attention).expected) - float(penalty(case.attention).expected)
    error = float(penalty(case.attention).error)
    flops = float(training_flops(case).total) / float(training_flops(balanced).total) - 1.0
    kept = _activations(case) / _activations(balanced) - 1.0
    return (
        f"Priority balanced would answer {theirs}. {mine} costs {cache:.3g}x its cache at "
        f"inference ({format_bytes(cost.cache_bytes(case))} against "
        f"{format_bytes(cost.cache_bytes(balanced))}) for an expected loss lower by {loss:.3f} +- "
        f"{error:.3f} nats; training FLOPs {_signed(flops)}, activations {_signed(kept)}."
    )


def _signed(share: float) -> str:
    return "unchanged" if abs(share) < 0.0005 else f"{share:+.1%}"


def _with(case: Case, attention: GroupedQuery) -> Case:
    groups = tuple(
        g if g.attention is None else replace(g, attention=attention) for g in case.shape.groups
    )
    return replace(case, shape=replace(case.shape, groups=groups))
