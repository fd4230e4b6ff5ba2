"""Several seeds as one figure with its spread, and whether two such figures differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from configurator.probe.train import Run
from configurator.render.curves import Series

__all__ = ["Spread", "differ", "loss_band", "mean_loss", "noise", "spread"]

_TWO_SIDED = 2.0
_LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean, lowest and highest over seeds."""

    mean: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The seeds' mean and range."""
    return Spread(mean=fmean(values), low=min(values), high=max(values))


def mean_loss(run: Run) -> float:
    """Held-out loss averaged over the run's points: small means learned soon *and* well.

    A final loss alone calls two models equal that both solve the task, however late.
    """
    return fmean(point.loss for point in run.curve)


def noise(groups: Sequence[Sequence[float]]) -> float:
    """Standard deviation between seeds, pooled over the arms: few seeds an arm, many arms.

    0 where no arm has two seeds; then nothing can be told from noise.
    """
    pooled = [(len(g) - 1, variance(g)) for g in groups if len(g) > 1]
    freedom = sum(n for n, _ in pooled)
    return sqrt(sum(n * v for n, v in pooled) / freedom) if freedom else 0.0


def differ(a: Sequence[float], b: Sequence[float], deviation: float) -> int:
    """-1 where ``b`` is lower than ``a``, 1 where it is higher, 0 where noise can explain it.

    A difference counts when it exceeds two standard errors of itself and 2 % of the larger mean.
    With one seed there is no spread to compare with, so the answer is 0.
    """
    if min(len(a), len(b)) < 2:
        return 0
    gap = fmean(b) - fmean(a)
    error = deviation * sqrt(1 / len(a) + 1 / len(b))
    if abs(gap) <= max(_TWO_SIDED * error, _LEAST_SHARE * max(fmean(a), fmean(b))):
        return 0
    return 1 if gap > 0 else -1


def loss_band(label: str, runs: Sequence[Run]) -> Series:
    """The runs' held-out loss by step: their mean, and their range as a band."""
    by_step = list(zip(*(run.curve for run in runs), strict=True))
    losses = [[point.loss for point in points] for points in by_step]
    return Series(
        label=label,
        x=[points[0].step for points in by_step],
        y=[fmean(values) for values in losses],
        low=[min(values) for values in losses],
        high=[max(values) for values in losses],
    )
