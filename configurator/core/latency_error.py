"""How sure a predicted attention time is: factors on it that hold eight measurements of ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from configurator.core.case import Device
from configurator.core.dtypes import CacheType
from configurator.core.kernels import Kernel
from configurator.core.kinds import Attention
from configurator.core.latency_device import machine
from configurator.core.latency_priors import Coefficients
from configurator.core.units import Count, Real

__all__ = ["SIZES", "Interval", "error_factors", "evidence_class"]

# Roofline seconds up to which a prediction counts as of that size.
SIZES = {"floor": 1e-6, "small": 1e-5, "medium": 5e-5, "large": np.inf}
_UNFITTED = (0.6, 1.7)  # priors alone, on a device described by hand
_UNMEASURED = (1 / 3, 3.0)  # a vendor nobody timed: the better half of "3 to 8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Factors on a prediction between which eight of ten measurements fall, and why.

    ``confidence`` is ``measured`` (rows timed on this very device), ``class`` (validated on
    other devices of its class, each left out of the fit) or ``unmeasured``: the time is unknown,
    by a factor of 3 to 8, and only good for ranking; ``calibrate`` measures it.
    """

    low: Real
    high: Real
    confidence: str


def evidence_class(k: Kernel) -> str:
    """``latent``, ``trtllm``, ``served`` (vLLM and SGLang, timed) or ``unseen``."""
    if k.latent:
        return "latent"
    if not k.capped:
        return "unseen"
    return "trtllm" if k.family[-1] in ("xqa", "xqa_hopper", "mmha") else "served"


def error_factors(
    attention: Attention,
    device: Device,
    k: Kernel,
    kv: CacheType,
    *,
    phase: str,
    batch: Count,
    context: Count,
    window: Count,
) -> Interval:
    """The interval of a prediction by phase, size and the evidence for its kernel."""
    c = Coefficients(device)
    own = c.get(f"own.{phase}.error", 0.0)
    if own:
        return Interval(low=1 / (1 + own), high=1 + own, confidence="measured")
    m = machine(device)
    if m.group == "other":
        return Interval(low=_UNMEASURED[0], high=_UNMEASURED[1], confidence="unmeasured")
    keys: Any = np.where(np.asarray(window) > 0, np.minimum(window, context), context)
    ideal = np.asarray(np.asarray(batch) * keys * attention.cache_bytes(kv) / m.bandwidth)
    if phase == "prefill":
        pairs = 0.5 * np.asarray(batch) * keys * np.asarray(context, np.float64)
        ideal = np.asarray(pairs * attention.score_flops("prefill") / m.peak)
    which = np.searchsorted(np.array(list(SIZES.values())), ideal)
    stem = f"error.{phase}.{m.group}.{evidence_class(k)}"
    ends = []
    for end, fallback in zip(("low", "high"), _UNFITTED, strict=True):
        table = np.array([c.get(f"{stem}.{size}.{end}", fallback) for size in SIZES])
        found = table[np.minimum(which, len(table) - 1)]
        ends.append(float(found) if np.ndim(ideal) == 0 else found)
    return Interval(low=ends[0], high=ends[1], confidence="class")
