"""The words of a recommendation: why this one, why not that one, what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from configurator.core import cost
from configurator.core.case import Case
from configurator.core.dtypes import cache_type
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.quality import ERROR_NATS
from configurator.core.report import Option, TestHook
from configurator.core.step import decode_seconds
from configurator.core.units import format_bytes
from configurator.rank import Principles

__all__ = ["reason", "test_hook", "why", "why_not"]


_AGAINST = (
    "Against it speaks one 7B test on benchmarks: MMLU 45.2 with MHA, 41.2 with GQA of 8 KV heads "
    "(DeepSeek-V2 2024, arXiv 2405.04434); in loss all eight measured points are level or better."
)


_LIGHTER = (
    "Memory: it does not fit as asked and does with weights in 8 bits (--weight-dtype int8). That "
    "is preferred to heads whose loss hardly anyone measured: a dtype can be changed later, heads "
    "cannot. --priority memory takes what fits as it is."
)


def _fits_with(case: Case, weights: str) -> bool:
    if case.device is None:
        return False
    lighter = replace(case.workload, weight_dtype=weights)
    return bool(cost.memory(replace(case, workload=lighter)).fits)


def as_mha(case: Case) -> Case:
    """The same shape with one KV head per query head (feed-forward untouched)."""
    a = case.attention
    width = a.qk_nope_head_dim if isinstance(a, Latent) else a.d_head  # type: ignore[attr-defined]
    mha = GroupedQuery(d_model=a.d_model, n_heads=a.n_heads, n_kv_heads=a.n_heads, d_head=width)
    groups = tuple(
        group if group.attention is None else replace(group, attention=mha)
        for group in case.shape.groups
    )
    return replace(case, shape=replace(case.shape, groups=groups))


def reason(case: Case) -> str:
    """One sentence that ties the projection to the cache."""
    a = case.attention
    if case.shape.arch == "encoder":
        return (
            f"MHA with {a.n_heads} heads: an encoder reads its input once and keeps no cache, so "
            "sharing KV heads would save nothing"
            if a.projection == "MHA"
            else f"{a.projection} as asked; an encoder keeps no cache, so sharing saves nothing"
        )
    layer = a.cache_bytes(cache_type("fp16"))
    mha = as_mha(case).attention.cache_bytes(cache_type("fp16"))
    size = f"{layer:,} bytes a token and layer in fp16"
    if a.projection == "MHA":
        return f"MHA keeps {size}: one key and value for each of {a.n_heads} heads, shared by none"
    if isinstance(a, Latent):
        text = (
            f"MLA keeps one latent of {a.kv_lora_rank} + {a.qk_rope_head_dim} values, {size}, "
            f"{mha / layer:.1f}x less than MHA with {a.n_heads} heads"
        )
        ranks = case.workload.tensor_parallel
        return text + (f"; each of {ranks} ranks holds all of it" if ranks > 1 else "")
    shared = "one KV head" if a.kv_heads == 1 else f"{a.kv_heads} KV heads"
    return (
        f"{a.projection} shares {shared} among {a.n_heads} query heads: {size}, "
        f"{mha / layer:.4g}x less than MHA"
    )


def why(
    wish: Principles,
    chosen: Option,
    runner_up: Option | None,
    case: Case,
    asked: tuple[str, ...],
    around: Callable[[Attention], Case],
) -> tuple[str, ...]:
    """The reasons in the order in which they decide, with the margin to the runner-up.

    ``around`` gives the case of another attention at the same parameter budget.
    """
    said = [f"Projection: {wish.why['projection']}."]
    rec = chosen.recommendation
    if wish.projection[0] not in asked:
        said[0] = (
            f"Projection: {rec.projection}, as asked. Unasked it would be {wish.projection[0]}: "
            f"{wish.why['projection']}."
        )
    elif rec.projection != wish.projection[0]:
        said[0] = (
            f"Projection: {rec.projection}, since {wish.projection[0]} does not fit, or costs more "
            f"than the error in loss; otherwise {wish.why['projection']}."
        )
    if chosen.cache.fits is False and _fits_with(case, "int8"):
        said.append(_LIGHTER)
    if rec.projection in ("GQA", "MQA"):
        said.append(_AGAINST)
    said.append(
        f"Head width {rec.d_head}: {wish.why['d_head']}."
        if rec.d_head == wish.d_head
        else f"Head width {rec.d_head}: the usual {wish.d_head} was excluded or does not fit."
    )
    latent = rec.projection == "MLA" and rec.n_heads == wish.latent_heads
    said.append(f"{rec.n_heads} query heads: {wish.why['latent_heads' if latent else 'n_heads']}.")
    if rec.projection in ("GQA", "MQA") and case.shape.arch != "encoder":
        said.append(_kv_heads(wish, chosen))
        step = _one_step_further(case, chosen, around)
        if step:
            said.append(step)
    if runner_up is not None:
        said.append(_margin(chosen, runner_up))
    trade = {
        "quality": "Priority quality keeps a cached width of half the model's at every size.",
        "latency": "Priority latency keeps only what is within 10 % of the fastest that fits.",
        "memory": "Priority memory takes the smallest cache per device inside the loss error.",
        "training": "Priority training chooses KV heads by the width alone: a training step keeps "
        "no cache, and only what fits the target's memory at inference limits them.",
    }.get(wish.priority)
    return tuple(said if trade is None else [*said, trade])


def _margin(chosen: Option, other: Option) -> str:
    """How far the runner-up is, each quantity beside the error that makes it a tie or not."""
    loss = other.quality.penalty_nats - chosen.quality.penalty_nats
    error = max(chosen.quality.error_nats, other.quality.error_nats)
    said = [f"expected loss {loss:+.3f} nats (error {error:.3f})"]
    mine, theirs = chosen.cache.bytes_total, other.cache.bytes_total
    if mine and theirs:
        said.append(f"cache {theirs / mine:.3g}x")
    a, b = chosen.latency.decode_s, other.latency.decode_s
    if a and b:
        change = b / a - 1.0
        said.append("predicted decode " + (f"{change:+.0%}" if abs(change) >= 0.005 else "equal"))
    return f"Margin to the runner-up, {other.label}: {', '.join(said)}."


def _kv_heads(wish: Principles, chosen: Option) -> str:
    rec, x = chosen.recommendation, chosen.quality.cached_width
    wanted = int(wish.kv_heads(rec.d_head))
    where = f"cached width {x:.2f} of the model's"
    if rec.n_kv_heads == wanted and rec.n_kv_heads == wish.tensor_parallel > 1:
        return f"{rec.n_kv_heads} KV heads ({where}): one for each of the ranks, none copied."
    if rec.n_kv_heads == wanted:
        return (
            f"{rec.n_kv_heads} KV heads ({where}): the most, up to 8, that stay within 0.5, the "
            "smallest cached width without a measured cost."
        )
    return f"{rec.n_kv_heads} KV heads ({where}) instead of the usual {wanted}: " + (
        "the usual number does not fit, does not divide the heads, or was excluded."
        if wish.priority in ("balanced", "quality", "training")
        else f"the priority is {wish.priority}."
    )


def _one_step_further(case: Case, chosen: Option, around: Callable[[Attention], Case]) -> str:
    """What halving the KV heads would buy, in bytes, sequences and time beyond the error."""
    a = case.attention
    if not isinstance(a, GroupedQuery) or a.n_kv_heads < 2 or a.n_kv_heads % 2:
        return ""
    half = around(replace(a, n_kv_heads=a.n_kv_heads // 2))
    saved = cost.cache_bytes(case) - cost.cache_bytes(half)
    text = f"Halving them to {a.n_kv_heads // 2} would save {format_bytes(saved)} of cache"
    before, after = chosen.cache.max_batch, None
    if case.device is not None:
        after = int(cost.max_batch(half))
    if before and after and after > before:
        text += f" and fit {after:,} sequences instead of {before:,}"
    elif before and after == before:
        text += "; on each device it would save nothing, since KV heads would be copied"
    seconds = chosen.latency.decode_s
    if seconds and case.device is not None:
        gain = 1.0 - float(decode_seconds(half)) / seconds
        if abs(gain) < 0.005:
            text += "; the predicted step would not change"
        elif gain > 0:
            text += f"; the predicted step would be {gain:.0%} shorter, " + (
                "more than the 10 % a pair of predictions can tell apart"
                if gain > 0.10
                else "inside the 10 % that a pair of predictions cannot tell apart"
            )
    return text + "."


def why_not(other: Option, chosen: Option, case: Case) -> str:
    """Why ``other`` was not chosen, in numbers against the choice."""
    said = []
    if other.cache.fits is False and chosen.cache.fits:
        said.append("does not fit the target at this context and batch")
    extra = other.quality.penalty_nats
    if extra > ERROR_NATS and extra > chosen.quality.penalty_nats:
        said.append(f"expected loss +{extra:.3f} +- {other.quality.error_nats:.3f} nats")
    if case.shape.arch == "encoder":
        same_width = other.recommendation.d_head == chosen.recommendation.d_head
        said.append(
            "an encoder keeps no cache, so sharing KV heads saves nothing"
            if same_width
            else f"heads of {other.recommendation.d_head}; no cache either way"
        )
    else:
        said.append(_cache_difference(other, chosen))
        said.append(_time_difference(other, chosen))
    said.append(_beyond_the_numbers(other, chosen, case))
    kept = [s for s in said if s]
    return "; ".join(kept) or "a tie on every count; the more common choice is preferred"


def _beyond_the_numbers(other: Option, chosen: Option, case: Case) -> str:
    """What speaks against an option that the figures alone would favour."""
    theirs, mine = other.recommendation, chosen.recommendation
    if theirs.projection == mine.projection == "MLA":
        return "" if other.quality.extrapolated is False else "its rank is below what was tested"
    if theirs.projection == "MLA":
        if case.workload.tensor_parallel > 1:
            return "its latent is copied on every rank"
        return "fast kernels exist for few latent shapes; take it where the cache binds"
    if theirs.projection == "MQA":
        return "one KV head is the extreme: training was unstable in one report"
    if theirs.projection == "MHA" or case.shape.arch == "encoder":
        return ""
    x, y = other.quality.cached_width, chosen.quality.cached_width
    if x < y and x < 0.5:
        return (
            f"below a cached width of 0.5 (here {x:.2f}) measured costs scatter around zero; "
            "take it where the cache binds"
        )
    if theirs.d_head != mine.d_head:
        return f"heads of {theirs.d_head} instead of {mine.d_head}"
    return ""


def _cache_difference(other: Option, chosen: Option) -> str:
    mine, theirs = chosen.cache.bytes_total, other.cache.bytes_total
    if mine == theirs or not mine or not theirs:
        return ""
    if theirs > mine:
        return f"{theirs / mine:.3g}x the cache"
    text = f"{mine / theirs:.3g}x less cache"
    gain = other.quality.penalty_nats - chosen.quality.penalty_nats
    inside = abs(gain) <= ERROR_NATS
    return text + (", loss difference inside the error" if inside else "")


def _time_difference(other: Option, chosen: Option) -> str:
    a, b = chosen.latency.decode_s, other.latency.decode_s
    if not a or not b:
        return ""
    ratio = b / a
    limit = 1.25 if "MLA" in (other.recommendation.projection,) else 1.10
    if 1 / limit <= ratio <= limit:
        return "decode time about equal"
    said = f"decode {ratio:.2g}x as long" if ratio > 1 else f"decode {1 / ratio:.2g}x faster"
    kernel = other.latency.note
    return f"{said} ({kernel})" if kernel != chosen.latency.note and kernel else said


def test_hook(case: Case) -> TestHook:
    """A synthetic task for a two-layer version of the geometry, and how to run it."""
    a = case.attention
    flags = f"--d-model {a.d_model} --n-heads {a.n_heads}"
    if isinstance(a, Latent):
        flags += f" --kv-lora-rank {a.kv_lora_rank} --qk-nope-head-dim {a.qk_nope_head_dim}"
        flags += f" --qk-rope-head-dim {a.qk_rope_head_dim} --v-head-dim {a.v_head_dim}"
        flags += f" --q-lora-rank {a.q_lora_rank}" if a.q_lora_rank else ""
    else:
        flags += f" --n-kv-heads {a.kv_heads} --d-head {a.d_head}"  # type: ignore[attr-defined]
    causal = case.shape.arch != "encoder"
    task = "induction" if causal else "recall"
    text = (
        "a random segment repeats; from its second showing on every next token must be predicted "
        "from the first (A B ... A -> B)"
        if causal
        else "key-value pairs are shown, then a key; its value must be given back"
    )
    return TestHook(
        task=task,
        description=text,
        threshold=0.95,
        layers=2,
        control="a one-layer version of the same attention must stay below the threshold",
        command=f"mha-configurator probe --task {task} {flags}",
    )
