"""Timing that can be trusted: a loop that takes samples, and pure functions that judge them.

What goes wrong in benchmarks is judged here, on plain numbers: compilation counted as latency,
work that was launched but not finished, a cache read from on-chip memory, another program's time.
``torch.utils.benchmark.Timer`` repeats one statement on the same inputs; here inputs rotate
through a working set larger than the last-level cache, and a sample during which the system gave
the processor to somebody else is known and left out.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BUSY", "Judgement", "Samples", "Timer", "judge", "preemptions", "take"]

WARMUP = 3
BUSY = "other programs ran"
_STEADY = 0.1  # two halves of the warm-up whose medians differ by less are steady
_SLICE_S = 2e-3  # what an interruption costs, about: a slice of the scheduler's time
_LOST = 0.1  # share of a sample that interruptions may have cost
_TRUSTED = 5  # undisturbed samples that make the disturbed ones dispensable
_APART = 0.5  # share of the median by which the quartiles of one speed may lie apart
_FEW = 3  # samples below which a median is no more than one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a series of samples may be reported as.

    ``median_s`` and ``spread_s`` (between the quartiles) are of the samples after the warm-up.
    ``bytes_per_s`` is what they imply; ``flags`` say why the figure must not be used as a
    bandwidth or at all; ``ok`` is whether there are none.
    """

    median_s: float
    spread_s: float
    best_s: float
    samples: int
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    flags: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing speaks against the figure."""
        return not self.flags


def judge(
    samples_s: Sequence[float],
    *,
    warmup: int = WARMUP,
    bytes_read: float = 0,
    flops: float = 0,
    limit_bytes_per_s: float = 0,
    limit_flops_per_s: float = 0,
    cache_bytes: int = 0,
    working_set_bytes: int | None = None,
) -> Judgement:
    """The median after ``warmup`` samples, and what speaks against it.

    A sample that is no time (negative, NaN, infinite) is left out and said; a rate is given only
    where the median is above zero.

    Args:
        samples_s: seconds of every call in order, the first ones included.
        warmup: samples at the start that compile, load and fill caches.
        bytes_read: bytes one call has to read; 0 where no rate is asked for.
        flops: FLOPs of one call.
        limit_bytes_per_s: what the device can read at most; 0 where unknown.
        limit_flops_per_s: what it can compute at most; 0 where unknown.
        cache_bytes: its last-level cache; 0 where unknown.
        working_set_bytes: bytes that the calls rotate through; ``bytes_read`` where not given.

    Raises:
        ValueError: no sample that is a time is left after the warm-up.
    """
    taken = samples_s[warmup:]
    kept = sorted(s for s in taken if math.isfinite(s) and s >= 0)
    if not kept:
        raise ValueError(f"{len(samples_s)} samples leave nothing after a warm-up of {warmup}")
    median = statistics.median(kept)
    spread = _quartile(kept, 0.75) - _quartile(kept, 0.25)
    flags = []
    if len(kept) < len(taken):
        flags.append(f"{len(taken) - len(kept)} of {len(taken)} samples are no time: left out")
    if not kept[0]:
        flags.append("samples of 0 s: shorter than the clock can tell")
    if spread > _APART * median > 0:
        flags.append("samples lie far apart: two speeds, or a disturbed machine")
    rate = bytes_read / median if bytes_read and median else None
    if rate and limit_bytes_per_s and rate > limit_bytes_per_s:
        flags.append(
            f"implied rate {_engineering(rate)} B/s is above the device limit: "
            "timing not synchronised, or data not read"
        )
    speed = flops / median if flops and median else None
    if speed and limit_flops_per_s and speed > limit_flops_per_s:
        flags.append(
            f"implied {_engineering(speed)} FLOP/s are above the device limit: "
            "timing not synchronised, or work left out"
        )
    working = bytes_read if working_set_bytes is None else working_set_bytes
    if bytes_read and cache_bytes and working < cache_bytes:
        flags.append("working set smaller than the last-level cache: not a memory-bandwidth figure")
    return Judgement(
        median_s=median,
        spread_s=spread,
        best_s=kept[0],
        samples=len(kept),
        bytes_per_s=rate,
        flops_per_s=speed,
        flags=tuple(flags),
    )


def _engineering(value: float) -> str:
    power = 12 if value >= 1e12 else 9
    return f"{value / 10**power:.1f}e{power}"


def _quartile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(slots=True)
class Samples:
    """A series as taken: ``first_s`` holds compilation, ``warmup`` was needed to become steady.

    ``disturbed`` are the samples of which interruptions by the system took more than a tenth.
    """

    first_s: float
    warmup: int
    seconds: list[float] = field(default_factory=list)
    disturbed: list[bool] = field(default_factory=list)
    steady: bool = True

    def trusted(self) -> list[float]:
        """Undisturbed samples where there are enough of them, else all."""
        calm = [s for s, d in zip(self.seconds, self.disturbed, strict=True) if not d]
        return calm if len(calm) >= _TRUSTED else self.seconds

    @property
    def calm(self) -> bool:
        """Enough samples, or all, were left alone."""
        return not any(self.disturbed) or len(self.disturbed) - sum(self.disturbed) >= _TRUSTED

    def flags(self) -> tuple[str, ...]:
        """What a reader should know about how the series was taken."""
        said = []
        if not self.steady:
            said.append("did not become steady within the time allowed")
        if len(self.trusted()) < _FEW:
            said.append("too few samples for a median: a call takes too long for the time allowed")
        if not self.calm:
            said.append(
                f"{BUSY}: {sum(self.disturbed)} of {len(self.disturbed)} samples were interrupted"
            )
        return tuple(said)


def preemptions() -> int:
    """How often the system took a processor away from this process so far; 0 where unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


@dataclass(slots=True)
class Timer:
    """How one call is timed on a device: ``measure(call, i)`` gives its seconds.

    ``now`` is the clock that bounds the whole loop and ``disturbances`` the count of
    interruptions so far.
    """

    measure: Callable[[Callable[[int], Any], int], float]
    now: Callable[[], float] = time.perf_counter
    disturbances: Callable[[], int] = preemptions


def take(
    call: Callable[[int], Any],
    timer: Timer,
    *,
    min_samples: int = 7,
    max_samples: int = 50,
    limit_s: float = 1.0,
) -> Samples:
    """Samples of ``call(i)``, ``i`` counting up so that inputs rotate, once it runs steadily.

    The first call is kept apart. Warm-up goes on until the medians of its two halves agree
    within a tenth, or a third of ``limit_s`` is spent. Then samples are taken until
    ``min_samples`` undisturbed ones are there and a tenth of the time is used, or ``limit_s``
    or ``max_samples`` is reached; a slow call is sampled at least once and a fast one no less
    than ``min_samples`` times.
    """
    start = timer.now()
    first = timer.measure(call, 0)
    warm: list[float] = []
    steady = False
    while not steady and len(warm) < max_samples:
        warm.append(timer.measure(call, 1 + len(warm)))
        steady = len(warm) >= 4 and _agree(warm)
        if timer.now() - start - first > limit_s / 3:
            break
    found = Samples(first_s=first, warmup=len(warm), steady=steady or len(warm) < 4)
    start = timer.now()
    while len(found.seconds) < max_samples:
        before = timer.disturbances()
        found.seconds.append(timer.measure(call, 1 + len(warm) + len(found.seconds)))
        lost = (timer.disturbances() - before) * _SLICE_S
        found.disturbed.append(lost > _LOST * found.seconds[-1])
        spent = timer.now() - start
        calm = len(found.disturbed) - sum(found.disturbed)
        if spent > limit_s or (calm >= min_samples and spent > limit_s / 10):
            break
    return found


def _agree(series: Sequence[float]) -> bool:
    half = len(series) // 2
    early, late = statistics.median(series[-2 * half : -half]), statistics.median(series[-half:])
    return abs(early - late) <= _STEADY * max(early, late)
