"""The case a question asks about: context, source, layout of the cache, and ranks."""

from __future__ import annotations

from typing import Any

from configurator.core.case import Case, Workload
from configurator.core.dtypes import LATENT_FP8
from configurator.core.errors import UsageError
from configurator.core.kinds.mla import Latent
from configurator.interop.audit.accounting import caching_layers, with_mode, with_source
from configurator.interop.audit.question import AuditQuestion
from configurator.interop.audit.ranks import RankRule, rank_rule
from configurator.interop.huggingface.reading import Reading

__all__ = ["case_asked", "usual_context"]

_CONTEXT = 8192  # where neither the question nor the file states one


def usual_context(reading: Reading) -> int:
    """Tokens where no context is asked: the positions that the model states, else 8,192."""
    return reading.max_positions or _CONTEXT


def case_asked(
    reading: Reading, question: AuditQuestion, warnings: list[str], *, weights: str = "bf16"
) -> tuple[Case, RankRule, bool]:
    """The case that is asked about, which ranks its heads allow, and whether those asked are.

    What was assumed, and what is asked beyond what the model states, goes to ``warnings``.
    """
    context = question.context or usual_context(reading)
    warnings += _beyond(reading, context)
    shape = with_source(
        with_mode(reading.shape, question.cache_mode),
        _source(reading, question, context, warnings),
    )
    _check_layout(question, caching_layers(reading, shape))
    rule = rank_rule(
        [g.attention for g in shape.groups if g.attention is not None], key=reading.heads_key
    )
    ranks, allowed = _ranks(question, rule, warnings)
    work = Workload(
        context=context,
        batch=question.batch,
        weight_dtype=weights,
        kv=question.kv,
        tensor_parallel=ranks,
        page_size=question.page_size,
        source_len=question.source_len or reading.source_default,
        benchmarking=True,  # a model that exists is judged as it is
        allow_decoupled=True,
    )
    return Case(shape=shape, workload=work, device=question.device), rule, allowed


def _beyond(reading: Reading, context: int) -> list[str]:
    """A word on a context that the model's positions do not reach."""
    limit = reading.longest or reading.max_positions
    if not limit or context <= limit:
        return []
    scaled = " after its rotary scaling" if limit > reading.max_positions else ""
    return [
        f"context {context:,} is beyond the {limit:,} positions that the model states{scaled}: "
        "bytes and times hold, what it answers there does not; extend its positions first, or "
        f"ask for {limit:,} tokens at most"
    ]


def _check_layout(question: AuditQuestion, attentions: list[Any]) -> None:
    """The mixed layout of latents is refused for a cache that keeps no latent."""
    if question.kv.k == LATENT_FP8 and not all(
        isinstance(a, Latent) and not a.rebuilt for a in attentions
    ):
        raise UsageError(
            "kv-dtype fp8_ds_mla is a layout of MLA's latents, and this cache keeps keys and "
            "values; use fp8"
        )


def _source(reading: Reading, question: AuditQuestion, context: int, warnings: list[str]) -> int:
    crossed = [g for g in reading.shape.groups if g.scope.kind == "cross"]
    if not crossed:
        if question.source_len:
            warnings.append("source-len has no effect: this model has no cross-attention")
        return 0
    if reading.source_fixed:
        fixed = int(crossed[0].scope.size)
        if question.source_len and question.source_len != fixed:
            warnings.append(
                f"source-len {question.source_len:,} is not used: the encoder always gives "
                f"{fixed:,} positions"
            )
        return fixed
    if question.source_len:
        return question.source_len
    source = reading.source_default or context
    warnings.append(
        f"cross-attention cache counted for {source:,} source positions; give source-len for yours"
    )
    return source


def _ranks(question: AuditQuestion, rule: RankRule, warnings: list[str]) -> tuple[int, bool]:
    """The rank count to count for, and whether the heads allow it."""
    if question.tensor_parallel is not None:
        ranks = question.tensor_parallel
        if question.device is not None:
            question.device.check_ranks(ranks)
        verdict = rule.verdict(ranks) if rule.pairs or rule.latent_heads else "allowed"
        allowed = not verdict.startswith("refused")
        if not allowed:
            near = [n for n in rule.counts(copies=True) if n <= ranks]
            warnings.append(
                f"tensor-parallel {ranks} is {verdict}; the heads allow "
                f"{', '.join(map(str, rule.counts(copies=True)))} (nearest below: {max(near)})"
            )
        return ranks, allowed
    count = question.device.count if question.device else 1
    fitting = [n for n in range(count, 0, -1) if count % n == 0 and rule.allows(n)]
    if fitting[0] != count:
        warnings.append(
            f"the target's {count} devices as ranks are {rule.verdict(count)}; counted with "
            f"tensor-parallel {fitting[0]} and {count // fitting[0]} replicas"
        )
    return fitting[0], True
