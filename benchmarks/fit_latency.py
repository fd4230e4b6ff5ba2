"""Fits the coefficients of the latency model to timed kernels and writes the catalog's files.

    python benchmarks/fit_latency.py --data timed.csv [--write] [--date 2026-11-30]

Least squares on log(predicted / measured) with a soft-L1 loss (scale 0.1), every device and
framework weighted alike, rows of 50 us and more 1.5 times, priors on the logarithms of all
coefficients. Coefficients of one phase are fitted together; Intel's own factors come after, with
everything else held. Without --write the coefficients are printed only. Needs scipy.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from timed_rows import Group, load

from configurator.core.latency_priors import PRIORS, Prior

SCALE = 0.1
LARGE_S = 50e-6
ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "configurator" / "catalog" / "coefficients"
# What is fitted together: the operations whose rows decide, and the coefficients that are free.
STAGES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("decode",), "decode."),
    (("prefill", "prefill_mla"), "prefill."),
    (("decode_mla",), "mla."),
)


def soft(residual: Any) -> Any:
    """Residuals whose square is the soft-L1 loss of ``residual`` at ``SCALE``."""
    squared = 2 * (np.sqrt(1 + (residual / SCALE) ** 2) - 1)
    return np.sign(residual) * SCALE * np.sqrt(squared)


def usable(groups: Sequence[Group], vendor: str = "NVIDIA") -> list[Group]:
    """Groups of a vendor whose kernel the fit knows: unseen ones say nothing about families."""
    return [g for g in groups if g.device.vendor == vendor and g.family not in ("fa4", "unknown")]


def fit_stage(
    groups: Sequence[Group],
    free: Callable[[str], bool],
    held: Mapping[str, float],
    priors: Mapping[str, Prior] = PRIORS,
) -> dict[str, float]:
    """The free coefficients that fit ``groups``, others as in ``held`` or their priors."""
    from scipy.optimize import least_squares

    names = [k for k, p in priors.items() if free(k) and p.spread > 0]
    means = np.log([priors[k].value for k in names])
    spreads = np.array([priors[k].spread for k in names])
    fixed = {k: p.value for k, p in priors.items()} | dict(held)
    totals: dict[tuple[str, str], int] = {}
    for g in groups:
        key = (g.device_name, g.framework)
        totals[key] = totals.get(key, 0) + len(g.seconds)
    weights = []
    for g in groups:
        weight = np.sqrt(600 / totals[g.device_name, g.framework])
        large = np.where(g.roofline() >= LARGE_S, np.sqrt(1.5), 1.0)
        weights.append(weight * large * ~g.suspect())

    def residuals(logs: Any) -> Any:
        values = fixed | dict(zip(names, np.exp(logs).tolist(), strict=True))
        found = [
            soft(np.log(g.predict(values) / g.seconds)) * w
            for g, w in zip(groups, weights, strict=True)
        ]
        found.append((logs - means) / spreads * SCALE)
        return np.concatenate(found)

    solved = least_squares(residuals, means, diff_step=1e-4, max_nfev=60)
    return dict(zip(names, np.exp(solved.x).tolist(), strict=True))


def fit(groups: Sequence[Group], priors: Mapping[str, Prior] = PRIORS) -> dict[str, float]:
    """All coefficients of the NVIDIA class, stage by stage; stages without rows keep priors."""
    known = usable(groups)
    found: dict[str, float] = {k: p.value for k, p in priors.items()}
    for ops, stem in STAGES:
        rows = [g for g in known if g.op in ops]
        if rows:
            found |= fit_stage(
                rows, lambda k, stem=stem: k.startswith(stem) and "intel" not in k, found, priors
            )
    return found


def fit_intel(groups: Sequence[Group], held: Mapping[str, float]) -> dict[str, float]:
    """Intel's factors on the class, from its own rows."""
    rows = [g for g in groups if g.device.vendor == "Intel" and g.op == "decode"]
    if not rows:
        return {}
    return fit_stage(rows, lambda k: ".intel" in k, held)


def toml_document(head: Sequence[str], about: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """A coefficients file: comment lines, a table of what it is, a table of values."""
    lines = [f"# {line}" if line else "#" for line in head]
    lines += ["", "[about]"]
    for key, value in about.items():
        text = f"[{', '.join(_quoted(v) for v in value)}]" if isinstance(value, list) else None
        lines.append(f"{key} = {text or _quoted(value)}")
    lines += ["", "[values]"]
    lines += [f'"{key}" = {float(f"{value:.4g}")!r}' for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if isinstance(value, str) else str(value)


def write(path: Path, text: str) -> None:
    """A file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="CSV of timed kernels (see README.md)")
    parser.add_argument("--write", action="store_true", help="write the catalog's files")
    parser.add_argument("--date", default="", help="date of the fit, kept in the files")
    options = parser.parse_args(arguments)
    groups = load(options.data)
    values = fit(groups)
    intel = fit_intel(groups, values)
    stems = tuple(stem for _, stem in STAGES)
    nvidia = {k: v for k, v in values.items() if k.startswith(stems) and "intel" not in k}
    count = sum(len(g.seconds) for g in groups)
    common = {
        "date": options.date,
        "script": "benchmarks/fit_latency.py",
        "source": "timed kernels published by ai-dynamo/aiconfigurator (Apache-2.0)",
        "rows": count,
    }
    used = sorted({g.device_name for g in usable(groups)})
    head = [
        "Latency coefficients of the NVIDIA class, fitted; keys are explained in",
        "configurator/core/latency_priors.py. Errors are in the files error-*.toml.",
    ]
    document = toml_document(head, {"applies": "sm_", "devices": used, **common}, nvidia)
    head = [
        "Factors of Intel Arc on the class, from the rows of one Arc Pro B60.",
        "Its fp8 cache has a second, slower kernel that is not modelled.",
    ]
    about = {"applies": "xe", "extends": "attention-nvidia", "devices": ["b60"], **common}
    own = toml_document(head, about, intel)
    if options.write:
        write(TARGET / "attention-nvidia.toml", document)
        if intel:
            write(TARGET / "attention-intel.toml", own)
    else:
        sys.stdout.write(document + "\n" + own)
    return 0


if __name__ == "__main__":
    sys.exit(main())
