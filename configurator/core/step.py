"""Decode and prefill time of a whole model on its target, what bounds them, and how sure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from configurator.core.case import Case, Device
from configurator.core.cost import sequences_per_replica
from configurator.core.grid import by_pieces
from configurator.core.latency import Interval, interval
from configurator.core.latency_priors import Coefficients
from configurator.core.step_parts import StepParts, decode_step, prefill_step, rank_attention
from configurator.core.units import Real

__all__ = ["Step", "decode_seconds", "prefill_seconds", "step"]

_PIECE = 1 << 14  # elements at a time: some twenty columns then stay in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One case's times. ``error_low`` and ``error_high`` are factors on ``decode_s``.

    ``bound`` is one of ``weights``, ``attention``, ``launch floor``, ``collectives``,
    ``compute``, ``unknown``; ``regime`` a sentence for the reader; ``confidence`` as in
    :class:`configurator.core.latency_error.Interval`; ``parts`` are decode's seconds by cause.
    """

    decode_s: float
    prefill_s: float
    bound: str
    regime: str
    error_low: float
    error_high: float
    confidence: str
    parts: dict[str, float]


def _device(case: Case) -> Device:
    if case.device is None:
        raise ValueError("a step needs a device")
    return case.device


def decode_seconds(case: Case) -> Real:
    """Seconds for one new token of every sequence in the batch; a number or a column.

    ``products + attention of each layer + launches + collectives``, on the busiest device with
    nothing else running. NaN where the device lacks a rate, or a link speed that tensor
    parallelism needs. Raises ``ValueError`` without a device.
    """
    device = _device(case)
    return by_pieces(case, _PIECE, lambda piece: decode_step(piece, device).total)


def prefill_seconds(case: Case) -> Real:
    """Seconds to read the whole batch's prompts of ``context`` tokens; a number or a column."""
    device = _device(case)
    return by_pieces(case, _PIECE, lambda piece: prefill_step(piece, device).total)


def _bound(p: StepParts) -> str:
    if not math.isfinite(p.total):
        return "unknown"
    terms = {
        "compute" if p.compute_bound else "weights": p.weights,
        "attention": p.attention - p.attention_floor,
        "launch floor": p.launches + p.attention_floor,
        "collectives": p.collectives,
    }
    return max(terms, key=lambda name: float(terms[name]))


def _regime(bound: str, share: float, floor: float) -> str:
    """What KV heads change, by the shares of a step that read the cache and that no byte changes.

    Halving the heads saves half of ``share`` at most, and a pair of predictions tells 10 % apart.
    """
    if bound == "unknown":
        return "the device lacks a rate that the prediction needs"
    said = f"reading the cache is {share:.0%} of a step"
    if share < 0.1:
        return f"{said}: KV heads change memory, not speed"
    if share < 0.2 or floor > share:
        return f"{said}: KV heads change memory more than speed"
    return f"{said}: KV heads change its speed"


def _interval(case: Case, device: Device, attention_share: float) -> Interval:
    """The step's interval: attention's by its share, the rest's by the split, both in logs.

    The rest was compared with serving runs by tensor parallelism; errors add in quadrature. The
    runs were all on Hopper, so it counts half as much again elsewhere (a judgement).
    """
    work = case.workload
    own = interval(
        rank_attention(case.attention, work.tensor_parallel),
        device,
        batch=sequences_per_replica(case),
        context=work.context,
        kv_dtype=work.kv,
    )
    if own.confidence == "unmeasured":
        return own
    c = Coefficients(device)
    doublings = min(3, round(math.log2(max(int(work.tensor_parallel), 1))))
    rest = c.get(f"error.step.tp{2**doublings}", 0.3)
    rest *= 1.0 if device.architecture == "sm_90" else 1.5

    def end(factor: float) -> float:
        width = math.hypot(attention_share * math.log(factor), rest)
        return math.exp(math.copysign(width, math.log(factor)))

    return Interval(low=end(float(own.low)), high=end(float(own.high)), confidence=own.confidence)


def step(case: Case) -> Step:
    """Times of one case, with what bounds decode, the regime in words and the error.

    Raises ``ValueError`` without a device.
    """
    device = _device(case)
    decode, prefill = decode_step(case, device), prefill_step(case, device)
    which, total = _bound(decode), float(decode.total)
    floor = float(decode.attention_floor) / total if total else 0.0
    share = float(decode.attention) / total - floor if total else 0.0
    found = _interval(case, device, float(decode.attention) / total if total else 0.0)
    return Step(
        decode_s=total,
        prefill_s=float(prefill.total),
        bound=which,
        regime=_regime(which, share, floor),
        error_low=float(found.low),
        error_high=float(found.high),
        confidence=found.confidence,
        parts={
            "weights": float(decode.weights),
            "attention": float(decode.attention),
            "launches": float(decode.launches),
            "collectives": float(decode.collectives),
        },
    )
