"""Measure this machine once, in under two minutes, and keep what predictions for it need.

Ceilings first, then a spread of small attention points in every type and kind of cache, from
which a floor, a rate of bytes and a rate of FLOPs follow (:mod:`configurator.bench.fit`). A
second set of points that the fit has not seen says how well it predicts: that error is kept with
the profile and shown with every prediction.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import torch

from configurator.bench.ceilings import measure as measure_ceilings
from configurator.bench.clock import judge, take
from configurator.bench.fit import coefficients, kendall_tau, sample
from configurator.bench.machine import Machine, environment
from configurator.bench.point import rows_of
from configurator.bench.points import Point, attention_from, attention_to
from configurator.bench.timers import timer_for
from configurator.core.case import Device
from configurator.core.errors import MissingError
from configurator.core.latency import predict_latency
from configurator.core.report import Measurement
from configurator.core.shapes import geometry
from configurator.host import Profile, detect, fingerprint, host_device

__all__ = ["Calibration", "Checked", "calibrate", "check_points", "fit_points"]

_FAST = (
    "folded", "sdpa", "k_transposed", "v_transposed", "v_pages", "fused_split", "absorbed",
    "absorbed_fused", "absorbed_split", "padded",
)  # fmt: skip
_GPU = ("split", "repeated", "sdpa_cudnn", "sdpa_flash")  # worth their time on a GPU only
_PASSES = 3
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A point that was not fitted: the best formulation, and both times."""

    case: str
    phase: str
    formulation: str
    predicted_s: float
    measured_s: float
    spread_s: float
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The profile and how it did on points it had not seen.

    ``tau`` and ``error`` (the median of ``|predicted / measured - 1|``) are by phase, and over
    all under ``all``.
    """

    profile: Profile
    checked: tuple[Checked, ...]
    tau: dict[str, float]
    error: dict[str, float]
    seconds: float


def _geometries(names: str) -> list[dict[str, Any]]:
    shapes: dict[str, dict[str, Any]] = {
        "mha": {"d_model": 4096, "n_heads": 32},
        "gqa8": {"d_model": 4096, "n_heads": 32, "n_kv_heads": 8},
        "gqa4": {"d_model": 3072, "n_heads": 24, "n_kv_heads": 4},
        "mqa": {"d_model": 4096, "n_heads": 32, "n_kv_heads": 1},
        "small": {"d_model": 1024, "n_heads": 16},
        "smallgqa": {"d_model": 1024, "n_heads": 16, "n_kv_heads": 4},
        "tiny": {"d_model": 512, "n_heads": 8, "n_kv_heads": 2},
        "mla": {"d_model": 4096, "n_heads": 32, "kv_lora_rank": 512},
        "mla8": {"d_model": 1024, "n_heads": 8, "kv_lora_rank": 512},
        "mla48": {"d_model": 6144, "n_heads": 48, "kv_lora_rank": 512},
        "mla16": {"d_model": 2048, "n_heads": 16, "kv_lora_rank": 512},
        "mla256": {
            "d_model": 3072, "n_heads": 24, "kv_lora_rank": 256, "qk_rope_head_dim": 32,
        },
    }  # fmt: skip
    return [attention_to(geometry(**shapes[name])) for name in names.split()]


def _cross(
    names: str, sizes: Sequence[tuple[int, int]], dtype: str, phase: str, device: str
) -> list[Point]:
    on_gpu = device.startswith("cuda")
    factor = 4 if on_gpu else 1
    return [
        Point(
            attention=shape, phase=phase, context=factor * context, batch=batch, kv_dtype=dtype,
            device=device, formulations=_FAST + _GPU * on_gpu, limit_s=0.1,
        )
        for shape in _geometries(names)
        for context, batch in sizes
    ]  # fmt: skip


def fit_points(device: str = "cpu") -> list[Point]:
    """What the coefficients are fitted to: ends and middle of sizes, in 16 and 32 bit."""
    sizes = [(1024, 1), (4096, 1), (16384, 1), (2048, 4)]
    return [
        *_cross("mha gqa8 mqa smallgqa", sizes, "bf16", "decode", device),
        *_cross("mla mla8 mla256", sizes[1:], "bf16", "decode", device),
        *_cross("gqa8 small", [(1024, 1), (8192, 1)], "fp32", "decode", device),
        *_cross("mla8 mla", [(1024, 1), (4096, 1)], "fp32", "decode", device),
        *_cross("mha smallgqa tiny", [(256, 1), (512, 1), (1024, 1)], "bf16", "prefill", device),
        *_cross("mla16", [(256, 1), (512, 1), (1024, 1)], "bf16", "prefill", device),
        *_cross("smallgqa", [(256, 1), (1024, 1)], "fp32", "prefill", device),
    ]


def check_points(device: str = "cpu") -> list[Point]:
    """What the fit is judged by: other geometries and other sizes, in the default cache type."""
    sizes = [(1536, 1), (3072, 2), (12288, 1)]
    return [
        *_cross("mha gqa8 gqa4 small tiny mqa", sizes, "bf16", "decode", device),
        *_cross("mla48 mla16", sizes[:2], "bf16", "decode", device),
        *_cross("gqa4 small tiny", [(384, 1), (768, 1)], "bf16", "prefill", device),
        *_cross("mla", [(384, 1), (768, 1)], "bf16", "prefill", device),
    ]


@dataclass(slots=True)
class _Timed:
    """One point's passes: the fastest formulation of each."""

    point: Point
    rows: list[Measurement]

    @property
    def middle(self) -> Measurement:
        """The pass whose time is the median of all."""
        return sorted(self.rows, key=lambda r: r.measured_s or 0.0)[(len(self.rows) - 1) // 2]


def _ranked(point: Point, here: Machine) -> list[Measurement]:
    rows = [r for r in rows_of(point, here) if r.status == "ok" and r.measured_s]
    return sorted(rows, key=lambda r: r.measured_s or 0.0)


def _time_all(
    points: Sequence[Point], here: Machine, progress: Progress | None, until: float
) -> dict[int, _Timed]:
    """Every point in several passes, in an order that mixes sizes and purposes.

    A machine's speed drifts while others use it; were the fitted points timed before the
    checked ones, the drift would look like an error of the model. The first pass times every
    formulation, later ones the two fastest.
    """
    order = list(range(len(points)))
    random.Random(0).shuffle(order)
    found: dict[int, _Timed] = {}
    for done, i in enumerate(order * _PASSES):
        if time.perf_counter() > until:
            break
        known = found.get(i)
        point = points[i] if known is None else known.point
        rows = _ranked(point, here)
        if rows and known is None:
            names = tuple(r.formulation for r in rows[:2])
            found[i] = _Timed(replace(point, formulations=names), rows[:1])
        elif rows and known is not None:
            known.rows.append(rows[0])
        if progress:
            progress(done + 1, _PASSES * len(points), point.case)
    return found


def _widening(device: str, limit_s: float = 0.1) -> dict[str, float]:
    """How fast narrow cache types are converted to bf16, in values per second."""
    timer, found = timer_for(device), {}
    for name, kind in (("fp8", torch.float8_e4m3fn), ("int8", torch.int8)):
        try:
            narrow = torch.ones(1 << 24, device=device).to(kind)
            call = _converting(narrow)
            seconds = judge(take(call, timer, limit_s=limit_s).trusted(), warmup=0).median_s
        except (RuntimeError, TypeError):
            continue
        found[f"host.convert.{name}.elements_per_s"] = narrow.numel() / seconds
    return found


def _converting(narrow: torch.Tensor) -> Callable[[int], torch.Tensor]:
    return lambda i: narrow.to(torch.bfloat16)


def _predicted(point: Point, target: Device) -> float:
    return float(
        predict_latency(
            attention_from(point.attention), target, phase=point.phase, batch=point.batch,
            context=point.context, kv_dtype=point.kv_dtype,
        )
    )  # fmt: skip


def calibrate(
    device: str = "cpu",
    *,
    budget_s: float = 110.0,
    progress: Progress | None = None,
    points: Sequence[Point] | None = None,
    checks: Sequence[Point] | None = None,
) -> Calibration:
    """Measure ``device`` and fit its coefficients; the profile is returned, not yet kept.

    Args:
        device: torch's name: ``cpu``, ``cuda`` or ``mps``.
        budget_s: no further point is begun after this long; what was left out is not fitted.
        progress: called with points done, points in all, and what was measured.
        points: instead of :func:`fit_points`.
        checks: instead of :func:`check_points`.

    Raises:
        MissingError: nothing could be measured in the time or memory there is.
    """
    start = time.perf_counter()
    facts = detect()
    fitted = list(fit_points(device) if points is None else points)
    unseen = list(check_points(device) if checks is None else checks)
    with torch.inference_mode():
        here = _machine(device)
        widening = _widening(device)
        timed = _time_all([*fitted, *unseen], here, progress, start + budget_s)
    samples = [
        sample(t.point, t.middle.measured_s or 0.0) for i, t in timed.items() if i < len(fitted)
    ]
    if not samples:
        raise MissingError("nothing could be measured: there is no memory or no time for it")
    profile = Profile(
        fingerprint=fingerprint(facts),
        created=datetime.now(UTC).strftime("%Y-%m-%d"),
        device=device,
        read_bytes_per_s=here.ceilings.read_bytes_per_s,
        copy_bytes_per_s=here.ceilings.copy_bytes_per_s,
        flops_per_s=here.ceilings.flops_per_s,
        coefficients={**coefficients(samples), **widening},
        environment=environment(device, here.ceilings),
    )
    target = host_device(facts, profile)
    checked = [
        _checked(t.point, t.middle, target) for i, t in sorted(timed.items()) if i >= len(fitted)
    ]
    tau, error = scores(checked)
    kept = {phase: e for phase, e in error.items() if phase != "all"}
    return Calibration(
        profile=replace(profile, error=kept),
        checked=tuple(checked),
        tau=tau,
        error=error,
        seconds=time.perf_counter() - start,
    )


def _checked(point: Point, row: Measurement, target: Device) -> Checked:
    return Checked(
        case=point.case,
        phase=point.phase,
        formulation=row.formulation,
        predicted_s=_predicted(point, target),
        measured_s=row.measured_s or 0.0,
        spread_s=row.spread_s or 0.0,
        flags=row.flags,
    )


def _machine(device: str) -> Machine:
    facts = detect()
    cache = facts.last_level_cache_bytes
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise MissingError("torch sees no CUDA device here; use --device cpu")
        cache = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    return Machine(
        torch_device=device,
        target=host_device(facts),
        ceilings=measure_ceilings(device, cache, limit_s=0.4),
        cache_bytes=cache,
    )


def scores(checked: Sequence[Checked]) -> tuple[dict[str, float], dict[str, float]]:
    """Kendall's tau and the median relative error, by phase and over all."""
    tau, error = {}, {}
    for phase in ("decode", "prefill", "all"):
        rows = [c for c in checked if phase in (c.phase, "all")]
        if len(rows) > 1:
            tau[phase] = kendall_tau([c.predicted_s for c in rows], [c.measured_s for c in rows])
            error[phase] = statistics.median(abs(c.predicted_s / c.measured_s - 1) for c in rows)
    return tau, error
