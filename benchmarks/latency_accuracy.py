"""Error of predicted attention times against timed kernels, beside two plain rules.

    python benchmarks/latency_accuracy.py --data timed.csv [--format json]
    python benchmarks/latency_accuracy.py --data timed.csv --leave-out h100_sxm
    python benchmarks/latency_accuracy.py --data timed.csv --lodo
    python benchmarks/latency_accuracy.py --data timed.csv --decision

Models: ``ours``; ``roofline`` (bytes over bandwidth or FLOPs over peak, the larger); ``fixed``
(80 % of the roofline, plus 3 us). Errors are |predicted / measured - 1|. The files repeat one
call, so predictions are for warm caches (``--cold`` for the other). Devices and kernels that were
never seen take the priors of their class; a device that is not in the catalog is named on stderr
and left out. ``--leave-out`` and ``--lodo`` fit without the device first (needs scipy).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from timed_rows import Group, load

LARGE_S = 50e-6
LARGE_BYTES = 16e6
MODELS = ("ours", "roofline", "fixed")


def kendall(predicted: Any, measured: Any) -> float | None:
    """Kendall's tau-b; None for fewer than 5 rows."""
    from scipy.stats import kendalltau

    if len(measured) < 5:
        return None
    value = float(kendalltau(predicted, measured).statistic)
    return value if np.isfinite(value) else None


def predictions(
    groups: Sequence[Group], coefficients: Callable[[Group], Mapping[str, float] | None], warm: bool
) -> dict[str, list[Any]]:
    """Seconds of every group by every model."""
    return {
        "ours": [g.predict(coefficients(g), warm) for g in groups],
        "roofline": [g.roofline() for g in groups],
        "fixed": [g.fixed() for g in groups],
    }


def summary(predicted: Any, groups: Sequence[Group]) -> dict[str, Any]:
    """Errors and rank correlation over the rows of ``groups``; unknown predictions are counted."""
    seconds = np.concatenate([g.seconds for g in groups])
    ideal = np.concatenate([g.roofline() for g in groups])
    held = np.concatenate([g.cache_bytes() for g in groups])
    known = np.isfinite(predicted)
    error = np.abs(predicted[known] / seconds[known] - 1)
    large, big = known & (ideal >= LARGE_S), known & (held >= LARGE_BYTES)
    large_error = np.abs(predicted[large] / seconds[large] - 1)

    def quantile(values: Any, share: float) -> float | None:
        return round(float(np.quantile(values, share)), 4) if len(values) else None

    return {
        "n": int(known.sum()),
        "median_error": quantile(error, 0.5),
        "p90_error": quantile(error, 0.9),
        "tau": _rounded(kendall(predicted[known], seconds[known])),
        "large_n": int(large.sum()),
        "large_median_error": quantile(large_error, 0.5),
        "tau_16mb": _rounded(kendall(predicted[big], seconds[big])),
        "unknown": int((~known).sum()),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def rows_by(
    groups: Sequence[Group],
    found: Mapping[str, Sequence[Any]],
    key: Callable[[Group], tuple[str, ...]],
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """One row per model and key: the key's names, then the summary."""
    order: dict[tuple[str, ...], list[int]] = {}
    for i, g in enumerate(groups):
        order.setdefault(key(g), []).append(i)
    rows = []
    for label, members in order.items():
        for model in MODELS:
            predicted = np.concatenate([found[model][i] for i in members])
            row = {"model": model} | dict(zip(names, label, strict=True))
            rows.append(row | summary(predicted, [groups[i] for i in members]))
    return rows


def side(group: Group) -> str:
    """``trtllm`` or ``served`` (vLLM and SGLang), as the targets are stated."""
    return "trtllm" if group.framework.casefold() == "trtllm" else "served"


def left_out(groups: Sequence[Group], leave: str, neutral: bool = False) -> dict[str, float]:
    """Coefficients fitted without one device."""
    from fit_latency import fit

    from configurator.core import latency_priors

    priors = latency_priors.neutral() if neutral else latency_priors.PRIORS
    return fit([g for g in groups if g.device_name != leave], priors)


def print_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """The rows as an aligned table."""
    figures = ("n", "median_error", "p90_error", "tau", "large_n", "large_median_error", "tau_16mb")
    heads = (*names, "model", "n", "median", "p90", "tau", "n large", "large", "tau 16MB")
    table = [heads]
    for row in rows:
        cells = [str(row[n]) for n in (*names, "model")]
        for f in figures:
            value = row[f]
            cells.append("-" if value is None else str(value) if f[-1] == "n" else f"{value:.3f}")
        table.append(tuple(cells))
    widths = [max(len(line[i]) for line in table) for i in range(len(heads))]
    left = len(names) + 1
    for line in table:
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="CSV of timed kernels (see README.md)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--leave-out", metavar="DEVICE", help="fit without it, judge on it")
    parser.add_argument("--lodo", action="store_true", help="every NVIDIA device left out in turn")
    parser.add_argument("--neutral", action="store_true", help="priors without kernel families")
    parser.add_argument("--decision", action="store_true", help="which of two geometries is faster")
    parser.add_argument("--cold", action="store_true", help="predict for cold caches")
    options = parser.parse_args(arguments)
    groups = load(options.data)
    if not groups:
        print("error: no usable rows", file=sys.stderr)
        return 2
    fitted: dict[str, Mapping[str, float]] = {}
    if options.leave_out or options.lodo:
        devices = sorted({g.device_name for g in groups if g.device.vendor == "NVIDIA"})
        for name in [options.leave_out] if options.leave_out else devices:
            fitted[name] = left_out(groups, name, options.neutral)
        groups = [g for g in groups if g.device_name in fitted]
    if options.decision:
        from decision import decision_rows, print_decision

        rows = decision_rows(groups, lambda g: fitted.get(g.device_name))
        if options.format == "json":
            print(json.dumps({"decision": rows}, indent=1))
        else:
            print_decision(rows)
        return 0
    found = predictions(groups, lambda g: fitted.get(g.device_name), not options.cold)
    names = ("device", "framework", "kernel", "phase")
    rows = rows_by(
        groups, found, lambda g: (g.device_name, g.framework, g.kernel_name, g.op), names
    )
    sides = ("device", "frameworks", "phase")
    totals = rows_by(groups, found, lambda g: (g.device_name, side(g), g.op), sides)
    if options.format == "json":
        about = {
            "data": str(options.data),
            "caches": "cold" if options.cold else "warm",
            "left_out": sorted(fitted),
            "rows": rows,
            "summary": totals,
        }
        print(json.dumps(about, indent=1))
    else:
        print_rows(rows, names)
        print()
        print_rows(totals, sides)
    return 0


if __name__ == "__main__":
    sys.exit(main())
