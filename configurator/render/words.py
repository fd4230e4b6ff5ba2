"""Figures in words, said the same way in every format: sizes, times, penalties with their band."""

from __future__ import annotations

from configurator.core.report import (
    CacheReport,
    FeedForwardReport,
    LatencyReport,
    MemoryReport,
    QualityReport,
    Recommendation,
)
from configurator.core.units import format_bytes, format_count, format_seconds, many

__all__ = [
    "bound_by",
    "cache_total",
    "decode_time",
    "exact_bytes",
    "fits",
    "heads",
    "limits",
    "model",
    "penalty",
    "short_heads",
]


_BOUNDS = {
    "weights": "reading the weights",
    "launch floor": "the launch floor",
    "collectives": "traffic between devices",
    "compute": "arithmetic",
}


def bound_by(bound: str) -> str:
    """What bounds a step, in words."""
    return _BOUNDS.get(bound, bound)


def heads(r: Recommendation) -> str:
    """The geometry as a sentence: ``GQA: 32 query heads share 8 KV heads of width 128``."""
    if r.projection == "MLA":
        query = f"query latent {r.q_lora_rank:,}" if r.q_lora_rank else "no query latent"
        return (
            f"MLA: {r.n_heads} heads share a latent of {r.kv_lora_rank} + {r.qk_rope_head_dim} "
            f"rotary; per head keys {r.qk_nope_head_dim} + {r.qk_rope_head_dim}, "
            f"values {r.v_head_dim}; {query}"
        )
    if r.projection == "MHA":
        return f"MHA: {r.n_heads} heads of width {r.d_head}, each with its own keys and values"
    shared = "one KV head" if r.n_kv_heads == 1 else f"{r.n_kv_heads} KV heads"
    return f"{r.projection}: {r.n_heads} query heads share {shared} of width {r.d_head}"


def short_heads(r: Recommendation) -> str:
    """The geometry in a table's cell: ``GQA 32/8 x 128``, ``MLA 128 x 128, rank 512``."""
    if r.projection == "MLA":
        return f"MLA {r.n_heads} x {r.qk_nope_head_dim}, rank {r.kv_lora_rank}"
    return f"{r.projection} {r.n_heads}/{r.n_kv_heads} x {r.d_head}"


def _feed_forward(ff: FeedForwardReport) -> str:
    gate = "gated" if ff.gated else "not gated"
    if ff.kind == "dense":
        return f"d_ff {ff.d_ff:,} ({gate})"
    shared = f", {ff.shared_d_ff:,} shared" if ff.shared_d_ff else ""
    return (
        f"{ff.n_experts} experts of width {ff.d_ff:,}, {ff.experts_per_token} per token"
        f"{shared} ({gate})"
    )


def model(r: Recommendation) -> str:
    """The full shape in one line, with the exact parameter count."""
    layers = f"{r.n_layers} layers"
    if r.arch == "encoder-decoder":
        layers = f"{r.n_layers} encoder and {r.n_layers} decoder layers"
    tied = "tied" if r.tied_embeddings else "untied"
    text = (
        f"d_model {r.d_model:,}, {layers}, {_feed_forward(r.feed_forward)}, "
        f"vocabulary {r.vocab_size:,} {tied}: {r.params_total:,} parameters"
    )
    if r.params_active and r.params_active != r.params_total:
        text += f", {format_count(r.params_active)} active"
    if r.window:
        every = f"one layer in {r.full_every} keeps all" if r.full_every else "no layer keeps all"
        text += f"; window {many(r.window, 'token')}, {every}"
    return text


def exact_bytes(value: int) -> str:
    """A size with the whole number it came from: ``4 GiB (4,294,967,296 bytes)``."""
    short = format_bytes(value)
    return short if value < 1024 else f"{short} ({value:,} bytes)"


def cache_total(cache: CacheReport, context: int, batch: int) -> str:
    """What the cache holds in all, exactly, and its parts."""
    if cache.bytes_total == 0:
        return "none: nothing is kept from one step to the next"
    sequences = many(batch, "sequence")
    text = (
        f"{format_bytes(cache.bytes_per_token_per_layer_fp16)} per token and layer in fp16; "
        f"{format_bytes(cache.bytes_per_token)} per token in {cache.kv_dtype}; "
        f"{exact_bytes(cache.bytes_total)} for {sequences} of {many(context, 'token')}"
    )
    if cache.cross_attention_bytes:
        text += (
            f": self-attention {format_bytes(cache.self_attention_bytes)}, "
            f"cross-attention {format_bytes(cache.cross_attention_bytes)}"
        )
    if cache.bytes_per_token_past_window != cache.bytes_per_token:
        text += f"; past the window {format_bytes(cache.bytes_per_token_past_window)} per token"
    return text


def fits(memory: MemoryReport, does: bool | None) -> str:
    """The sum against the target's memory, and the verdict."""
    held = (
        f"weights {format_bytes(memory.weights_bytes)} + cache {format_bytes(memory.cache_bytes)}"
    )
    if memory.reserve_bytes is None or memory.capacity_bytes is None:
        return f"{held}; no target was named, so nothing to fit in"
    used = memory.weights_bytes + memory.cache_bytes + memory.reserve_bytes
    left = memory.capacity_bytes - used
    verdict = f"fits, {format_bytes(left)} left"
    if not does:
        over = f"{format_bytes(-left)} over" if left < 0 else "over on one device"
        verdict = f"does not fit: {over}"
    return (
        f"{held} + reserve {format_bytes(memory.reserve_bytes)} of "
        f"{format_bytes(memory.capacity_bytes)}: {verdict}"
    )


def limits(cache: CacheReport, context: int, batch: int) -> str:
    """The longest context at this batch and the largest batch at this context."""
    if cache.fits is None:
        return ""
    free = "not set by memory"
    longest = free if cache.max_context is None else many(cache.max_context, "token")
    largest = free if cache.max_batch is None else many(cache.max_batch, "sequence")
    return (
        f"longest context at batch {batch:,}: {longest}; "
        f"largest batch at {many(context, 'token')}: {largest}"
    )


def _error(latency: LatencyReport) -> str:
    if latency.decode_s is None:
        return ""
    if latency.low and latency.high and latency.high > 1.5:
        low, high = latency.decode_s * latency.low, latency.decode_s * latency.high
        return f" ({format_seconds(low)} to {format_seconds(high)})"
    return "" if latency.error is None else f" +- {latency.error * 100:.0f} %"


def decode_time(latency: LatencyReport) -> str:
    """One decode step with its error; ``unknown`` stays unknown."""
    return format_seconds(latency.decode_s) + _error(latency)


def penalty(quality: QualityReport, projection: str = "") -> str:
    """Nats a token with the band: ``0.004 +- 0.016``; a star marks an extrapolation.

    MHA without a penalty is what the others are measured against, so it has no band.
    """
    if projection == "MHA" and quality.penalty_nats == 0:
        return "reference"
    text = f"{quality.penalty_nats:.3f} +- {quality.error_nats:.3f}"
    return f"{text} *" if quality.extrapolated else text
