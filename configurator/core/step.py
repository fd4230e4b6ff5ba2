"""Decode and prefill time of a whole model on its target, what bounds them, and how sure."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Case, Device
from configurator.core.latency import interval
from configurator.core.step_parts import StepParts, decode_step, prefill_step
from configurator.core.units import Real

__all__ = ["Step", "decode_seconds", "prefill_seconds", "step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One case's times. ``low`` and ``high`` are factors on them; ``parts`` are decode's seconds.

    ``regime`` is a sentence for the reader; ``bound`` one of ``weights``, ``attention``,
    ``launch floor``, ``collectives``, ``compute``, ``unknown``.
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

    ``weights read + attention of each layer + launches + all-reduces``. NaN where the device
    lacks a rate, or a link speed that tensor parallelism needs. Raises ``ValueError`` without a
    device.
    """
    return decode_step(case, _device(case)).total


def prefill_seconds(case: Case) -> Real:
    """Seconds to read the whole batch's prompts of ``context`` tokens; a number or a column."""
    return prefill_step(case, _device(case)).total


def _bound(p: StepParts) -> str:
    terms = {
        "compute" if p.compute_bound else "weights": p.weights,
        "attention": p.attention - p.attention_floor,
        "launch floor": p.launches + p.attention_floor,
        "collectives": p.collectives,
    }
    if p.total != p.total:
        return "unknown"
    return max(terms, key=lambda name: float(terms[name]))


def step(case: Case) -> Step:
    """Times of one case, with what bounds decode, the regime in words and the error.

    Raises ``ValueError`` without a device.
    """
    device = _device(case)
    decode, prefill = decode_step(case, device), prefill_step(case, device)
    which = _bound(decode)
    total = float(decode.total)
    share = float(decode.attention - decode.attention_floor) / total if total else 0.0
    found = interval(case.attention, device, batch=case.workload.batch,
                     context=case.workload.context, kv_dtype=case.workload.kv)  # fmt: skip
    if which == "unknown":
        regime = "the device lacks a rate that the prediction needs"
    elif share < 0.1:
        regime = f"reading the cache is {share:.0%} of a step: KV heads change memory, not speed"
    else:
        regime = f"reading the cache is {share:.0%} of a step: KV heads change its speed"
    return Step(
        decode_s=total,
        prefill_s=float(prefill.total),
        bound=which,
        regime=regime,
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
