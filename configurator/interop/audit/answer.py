"""From a reading and a question to the answer: what is kept, by whom, and what fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from configurator.core.audit_report import Audit
from configurator.core.case import Case
from configurator.core.cost import (
    active_params,
    cache_budget_per_device,
    cache_bytes_per_token,
    max_batch,
    max_context,
    params_total,
    weights_bytes_per_device,
)
from configurator.core.kinds.mla import Latent
from configurator.core.layers import ModelShape
from configurator.core.units import format_bytes
from configurator.interop.audit.accounting import (
    caching_layers,
    decode_flops_per_cached_token,
    fixed_bytes,
    fixed_state,
    group_rows,
    index_keys,
    kv_bytes,
    per_token,
    qkv_width,
    same_or_list,
)
from configurator.interop.audit.asked import case_asked
from configurator.interop.audit.question import AuditQuestion, ask
from configurator.interop.audit.rules import rule_reports
from configurator.interop.audit.weights import with_weights
from configurator.interop.huggingface.reading import Reading, read_shape

__all__ = ["audit_config", "audit_shape"]


def audit_config(values: Mapping[str, Any], **question: Any) -> Audit:
    """Audit a parsed ``config.json``; the keywords are those of :func:`ask`.

    Raises ``UsageError`` for a configuration that cannot be right and for a question that is not
    allowed. Bytes are logical and exact: no allocator and no workspace, pages only when asked.
    """
    reading, weights = with_weights(read_shape(values), values)
    return audit_shape(reading, ask(**question), weights=weights)


def audit_shape(reading: Reading, question: AuditQuestion, *, weights: str = "bf16") -> Audit:
    """Audit a model that was read already; ``weights`` is the type its weights are stored in."""
    warnings = list(reading.warnings)
    case, rule, allowed = case_asked(reading, question, warnings, weights=weights)
    shape, work = case.shape, case.workload
    context, ranks = int(work.context), int(work.tensor_parallel)
    attentions = caching_layers(reading, shape)
    main = shape.main.attention
    is_latent = isinstance(main, Latent)
    if question.cache_mode == "rebuilt" and not is_latent:
        warnings.append("cache-mode rebuilt has no effect: this model keeps no latent")
    parts = kv_bytes(case)
    token, past = per_token(case)
    block = _block_bytes(case, ranks if allowed else 1)
    windowed = any(g.scope.kind == "window" for g in shape.groups)
    room = _room(case, question, reading, allowed, warnings)
    warnings += index_keys(case, attentions)
    params = int(params_total(shape)) if reading.params_known else None
    if params is None:
        warnings.append(
            f"parameters are unknown: the file does not state {', '.join(reading.unknown)}"
        )
    active = int(active_params(shape)) if params is not None else None
    if reading.active_unknown:
        active = None
        warnings.append(
            f"active parameters are unknown: the file does not state "
            f"{', '.join(reading.active_unknown)}"
        )
    own = [g for g in shape.groups if g.attention is not None and g.weights]
    per_layer = [
        int(g.attention.params()) for g in own for _ in range(g.count) if g.attention is not None
    ]
    return Audit(
        model_type=reading.model_type,
        known=reading.known,
        projection=main.projection if main is not None else "none",
        n_heads=same_or_list([int(a.n_heads) for a in attentions]) or _first(main, "n_heads"),
        n_kv_heads=same_or_list([int(a.kv_heads) for a in attentions]) or _first(main, "kv_heads"),
        d_head=_head_widths(main, attentions),
        v_head_dim=_value_widths(attentions),
        d_model=int(shape.d_model),
        vocab_size=int(shape.vocab_size) or None,
        tied_embeddings=bool(shape.tied),
        kv_layers=len(attentions),
        total_layers=_total_layers(shape),
        max_positions=reading.max_positions or None,
        kv_dtype=question.kv.name,
        cache_mode=question.cache_mode if is_latent else None,
        context=context,
        batch=question.batch,
        page_size=question.page_size,
        tensor_parallel=ranks,
        tensor_parallel_allowed=allowed,
        kv_bytes_per_token=token,
        kv_bytes_per_token_past_window=past,
        kv_bytes_at_context=sum(parts.values()),
        kv_bytes_at_context_by_kind=parts,
        kv_bytes_if_windowed_layers_reserved_full=(
            sum(kv_bytes(case, full=True).values()) if windowed else None
        ),
        kv_fixed_bytes_per_sequence=fixed_bytes(case),
        fixed_state_per_sequence=fixed_state(reading),
        kv_bytes_per_token_per_rank=(
            [int(cache_bytes_per_token(case, tensor_parallel=ranks))] * ranks if allowed else None
        ),
        kv_bytes_per_rank=(
            [sum(kv_bytes(case, ranks=ranks).values())] * ranks if allowed else None
        ),
        valid_tp=rule.valid(),
        tp_verdicts=rule.verdicts((ranks,)) if rule.pairs or rule.latent_heads else {},
        params_total=params,
        params_active_per_token=active,
        params_without_embedding=None if params is None else params - int(shape.embedding_params),
        attention_params_total=sum(per_layer) if per_layer or params is not None else None,
        attention_params_per_layer=same_or_list(per_layer),
        qkv_width=qkv_width(attentions),
        decode_flops_per_cached_token_per_layer=decode_flops_per_cached_token(main),
        bytes_per_block=block,
        blocks=room["blocks"],
        kv_budget_bytes=room["budget"],
        weights_bytes=room["weights"],
        weight_dtype=weights,
        max_context=room["max_context"],
        max_batch=room["max_batch"],
        fits=room["fits"],
        request=_request(case, parts, room["fits"]),
        target=_target(question),
        layer_groups=group_rows(case),
        warnings=tuple(dict.fromkeys(warnings)),
        vision_tower_heads=_tower_heads(reading, "vision"),
        audio_tower_heads=_tower_heads(reading, "audio"),
        rules=rule_reports(case, params_known=reading.params_known),
        case=case,
    )


def _block_bytes(case: Case, ranks: int) -> int:
    """One block of every layer that keeps its own tokens, on one rank."""
    page = int(case.workload.page_size)
    return page * int(cache_bytes_per_token(case, tensor_parallel=ranks))


def _room(
    case: Case, question: AuditQuestion, reading: Reading, allowed: bool, warnings: list[str]
) -> dict[str, Any]:
    """What fits: in the budget given, or in the target's memory beside weights and reserve."""
    room: dict[str, Any] = dict.fromkeys(
        ("budget", "weights", "blocks", "max_context", "max_batch", "fits")
    )
    if question.device is not None and reading.params_known:
        room["weights"] = int(weights_bytes_per_device(case)) * question.device.count
    if not allowed or (question.kv_budget is None and question.device is None):
        return room
    if question.kv_budget is not None:
        budget = question.kv_budget
    elif not reading.params_known:
        warnings.append("what fits on the target is unknown, since the parameters are")
        return room
    else:
        budget = int(cache_budget_per_device(case))
    block = _block_bytes(case, int(case.workload.tensor_parallel))
    longest, largest = max_context(case, budget), int(max_batch(case, budget))
    needed = sum(kv_bytes(case, ranks=int(case.workload.tensor_parallel)).values())
    state = fixed_bytes(case).get("recurrent_state", 0) * question.batch
    room["budget"] = budget
    room["blocks"] = budget // block if block else None
    room["max_context"] = None if longest < 0 else longest
    room["max_batch"] = None if largest < 0 else largest
    room["fits"] = _fits(longest, largest, question, needed + state, budget)
    if longest == 0 or largest == 0:
        per_rank = "" if case.workload.tensor_parallel == 1 else " on each rank"
        what = "nothing fits" if longest == 0 else "one sequence of the context does not fit"
        warnings.append(
            f"{what}: {format_bytes(budget)} ({budget:,} bytes) for the cache{per_rank}, "
            f"{format_bytes(needed)} needed at {case.workload.context:,} tokens"
        )
    return room


def _fits(longest: int, largest: int, question: AuditQuestion, needed: int, budget: int) -> bool:
    """What was asked fits; without a context asked, that anything at all does."""
    if longest == 0:
        return False
    if question.context is None:
        return True
    if largest < 0:
        return needed <= budget
    return largest >= question.batch


def _request(case: Case, parts: dict[str, int], fits: bool | None) -> dict[str, Any]:
    """What the asked context takes, in whole blocks."""
    page = int(case.workload.page_size)
    tokens = int(case.workload.context)
    found: dict[str, Any] = {
        "tokens": tokens,
        "blocks": -(-tokens // page),
        "bytes": sum(parts.values()),
    }
    if fits is not None:
        found["fits"] = fits
    return found


def _first(attention: Any, name: str) -> int | None:
    return None if attention is None else int(getattr(attention, name))


def _head_widths(main: Any, attentions: list[Any]) -> Any:
    if isinstance(main, Latent):
        return {
            "latent": int(main.latent_width),
            "qk": int(main.d_head),
            "v": int(main.v_width),
        }
    widths = [int(a.d_head) for a in attentions]
    return same_or_list(widths) if widths else _first(main, "d_head")


def _value_widths(attentions: list[Any]) -> Any:
    """Widths of values where they differ from those of keys."""
    pairs = [(int(a.d_head), int(a.v_width)) for a in attentions if not isinstance(a, Latent)]
    return same_or_list([v for _, v in pairs]) if any(k != v for k, v in pairs) else None


def _total_layers(shape: ModelShape) -> int:
    encoders = sum(g.count for g in shape.groups if g.label == "encoder")
    return int(shape.n_layers) + (encoders if shape.arch == "encoder-decoder" else 0)


def _tower_heads(reading: Reading, kind: str) -> int | None:
    return next((t.heads for t in reading.towers if t.kind == kind and t.heads), None)


def _target(question: AuditQuestion) -> str | None:
    if question.device is None:
        return None
    count = question.device.count
    return f"{count}x{question.device.name}" if count > 1 else question.device.name
