"""Several seeds as one figure with its spread, and whether two such figures differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev, variance

from configurator.probe.train import Run
from configurator.render.curves import Series

__all__ = ["Spread", "deviation", "differ", "error", "loss_band", "mean_loss", "nothing_learned",
           "spread"]  # fmt: skip

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""For 1 to 10 degrees of freedom; more would count a little less than they could."""
_LEAST_SHARE = 0.02
_LEARNED = 0.5


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


def deviation(values: Sequence[float]) -> float:
    """Standard deviation between seeds; 0 for one seed, which has none to show."""
    return stdev(values) if len(values) > 1 else 0.0


def error(values: Sequence[float]) -> float | None:
    """Half the width of the mean's 95 % interval (Student's t); None for one seed."""
    if len(values) < 2:
        return None
    return _quantile(len(values) - 1) * stdev(values) / sqrt(len(values))


def nothing_learned(runs: Iterable[Run]) -> str:
    """The sentence for runs that all ended below one in two, which say nothing of their arms."""
    best = max(run.accuracy for run in runs)
    if best >= _LEARNED:
        return ""
    return (
        f"nothing was learned ({best:.1%} at best), so the arms cannot be told apart; train longer"
    )


def differ(a: Sequence[float], b: Sequence[float]) -> int:
    """-1 where ``b`` is lower than ``a``, 1 where it is higher, 0 where noise can explain it.

    Welch's test at 95 %: arms that learn late scatter more, so variances are not pooled. Besides,
    a difference below 2 % of the larger mean does not count. With one seed there is no spread to
    compare with, so the answer is 0.
    """
    if min(len(a), len(b)) < 2:
        return 0
    gap = fmean(b) - fmean(a)
    error = sqrt(variance(a) / len(a) + variance(b) / len(b))
    bound = _quantile(_freedom(a, b)) * error
    if abs(gap) <= max(bound, _LEAST_SHARE * max(fmean(a), fmean(b))):
        return 0
    return 1 if gap > 0 else -1


def _freedom(a: Sequence[float], b: Sequence[float]) -> float:
    """Welch and Satterthwaite's degrees of freedom."""
    first, second = variance(a) / len(a), variance(b) / len(b)
    if first + second == 0:
        return float(len(a) + len(b) - 2)
    parts = first**2 / (len(a) - 1) + second**2 / (len(b) - 1)
    return (first + second) ** 2 / parts


def _quantile(freedom: float) -> float:
    """Student's two-sided 95 % quantile, that of the next lower whole degrees of freedom."""
    return _STUDENT[min(len(_STUDENT), max(1, int(freedom))) - 1]


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
