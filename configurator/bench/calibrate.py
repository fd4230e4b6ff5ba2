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

import torch

from configurator.bench.calibration_points import check_points, fit_points
from configurator.bench.ceilings import measure as measure_ceilings
from configurator.bench.clock import judge, take
from configurator.bench.fit import coefficients, kendall_tau, sample
from configurator.bench.machine import Machine, environment
from configurator.bench.point import rows_of
from configurator.bench.points import Point, attention_from
from configurator.bench.timers import timer_for
from configurator.core.case import Device
from configurator.core.errors import MissingError
from configurator.core.latency import predict_latency
from configurator.core.report import Measurement
from configurator.host import Profile, detect, fingerprint, host_device

__all__ = ["Calibration", "Checked", "calibrate", "scores"]

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


@dataclass(slots=True)
class _Timed:
    """One point's passes: the fastest formulation of each."""

    point: Point
    rows: list[Measurement]

    @property
    def middle(self) -> Measurement:
        """The pass whose time is the median of all."""
        return sorted(self.rows, key=lambda r: r.measured_s or 0.0)[(len(self.rows) - 1) // 2]


def _ranked(point: Point, here: Machine) -> tuple[list[Measurement], bool]:
    """Trusted rows, fastest first, and whether others were disturbed."""
    rows = [r for r in rows_of(point, here) if r.measured_s]
    good = sorted((r for r in rows if r.status == "ok"), key=lambda r: r.measured_s or 0.0)
    return good, len(good) < len(rows)


def _time_all(
    points: Sequence[Point], here: Machine, progress: Progress | None, until: float
) -> tuple[dict[int, _Timed], bool]:
    """Every point in several passes, in an order that mixes sizes and purposes.

    A machine's speed drifts while others use it; were the fitted points timed before the
    checked ones, the drift would look like an error of the model. The first pass times every
    formulation, later ones the two fastest.
    """
    order = list(range(len(points)))
    random.Random(0).shuffle(order)
    found: dict[int, _Timed] = {}
    busy = False
    for done, i in enumerate(order * _PASSES):
        if time.perf_counter() > until:
            break
        known = found.get(i)
        point = points[i] if known is None else known.point
        rows, disturbed = _ranked(point, here)
        busy = busy or disturbed
        if rows and known is None:
            names = tuple(r.formulation for r in rows[:2])
            found[i] = _Timed(replace(point, formulations=names), rows[:1])
        elif rows and known is not None:
            known.rows.append(rows[0])
        if progress:
            progress(done + 1, _PASSES * len(points), point.case)
    return found, busy


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
        MissingError: nothing could be measured in the time or memory there is, or other
            programs took the processor away in every sample.
    """
    start = time.perf_counter()
    facts = detect()
    fitted = list(fit_points(device) if points is None else points)
    unseen = list(check_points(device) if checks is None else checks)
    with torch.inference_mode():
        here = _machine(device)
        widening = _widening(device)
        timed, busy = _time_all([*fitted, *unseen], here, progress, start + budget_s)
    samples = [
        sample(t.point, t.middle.measured_s or 0.0) for i, t in timed.items() if i < len(fitted)
    ]
    if not samples:
        why = (
            "other programs disturbed every timing; run it when the machine is quiet"
            if busy
            else "there is no memory for it, or no time"
        )
        raise MissingError(f"nothing could be measured: {why}")
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
