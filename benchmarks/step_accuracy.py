"""A whole model's decode step against published serving runs, and the fit of its coefficients.

    python benchmarks/step_accuracy.py --data serving.csv [--format json]
    python benchmarks/step_accuracy.py --data serving.csv --fit [--write] [--date 2026-11-30]

The runs are loaded: with ``batch_size`` requests in flight, every request that ends is replaced,
so in the ``osl`` steps of one request ``batch_size`` prompts are read as well. Time per output
token is then ``decode step + batch_size * prefill of one prompt / osl``, at a mean context of
``isl + osl / 2``; both terms are the core's (``configurator/core/step.py``), and nothing else is
added. ``--fit`` fits the step's coefficients, judges each stack (backend and model) by a fit to
the others, and with ``--write`` replaces the catalog's file. Needs scipy for the fit.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fit_latency import TARGET, soft, toml_document, write
from timed_rows import find_device

from configurator.catalog.published import model
from configurator.core.case import Case, Device, Workload
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.latency_priors import PRIORS
from configurator.core.layers import ModelShape
from configurator.core.step import decode_seconds, prefill_seconds

# The runs' names of models that the catalog calls otherwise.
_SAID = {"llama-3.1-8b-instruct": "llama-3.1-8b"}
FITTED = [k for k, p in PRIORS.items() if k.startswith("step.") and p.spread > 0]


@dataclass(slots=True)
class Runs:
    """Serving points of one backend, model, precision and tensor parallelism, as columns."""

    backend: str
    model_name: str
    shape: ModelShape
    device: Device
    weight_dtype: str
    kv: str
    ranks: int
    batch: Any
    prompt: Any
    output: Any
    seconds: Any

    @property
    def stack(self) -> tuple[str, str]:
        """Backend and model: what is left out together."""
        return self.backend, self.model_name

    def _case(self, device: Device, batch: Any, context: Any) -> Case:
        work = Workload(
            context=context,
            batch=batch,
            weight_dtype=self.weight_dtype,
            kv=cache_type(self.kv),
            tensor_parallel=self.ranks,
        )
        return Case(shape=self.shape, workload=work, device=device)

    def terms(self, coefficients: Mapping[str, float] | None = None) -> tuple[Any, Any]:
        """Seconds of a decode step, and of the prompts read meanwhile, per output token."""
        device = self.device
        if coefficients is not None:
            device = replace(device, coefficients={**device.coefficients, **coefficients})
        decode = decode_seconds(self._case(device, self.batch, self.prompt + self.output // 2))
        one = prefill_seconds(self._case(device, 1, self.prompt))
        return decode, self.batch * one / self.output

    def predict(self, coefficients: Mapping[str, float] | None = None) -> Any:
        """Seconds per output token under load."""
        return sum(self.terms(coefficients))

    def roofline(self) -> Any:
        """Weights and cache over the bandwidth of all ranks."""
        from configurator.core.cost import cache_bytes_per_rank, weights_bytes_per_device

        case = self._case(self.device, self.batch, self.prompt + self.output // 2)
        moved = weights_bytes_per_device(case) + cache_bytes_per_rank(case)
        return moved / self.device.bandwidth_bytes_per_s


def load(path: str) -> list[Runs]:
    """The points of a file; what cannot be used is named on stderr."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kept: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        key = tuple(row[k] for k in ("backend", "model_path", "system", "precision", "tp_size"))
        kept.setdefault(key, []).append(row)
    found = []
    for (backend, path_name, system, precision, ranks), points in kept.items():
        name = path_name.split("/")[-1].casefold()
        device = find_device(system)
        try:
            shape = model(_SAID.get(name, name)).shape()
        except UsageError as error:
            print(f"warning: {len(points)} rows skipped: {error}", file=sys.stderr)
            continue
        if device is None:
            print(f"warning: {len(points)} rows skipped: no device {system!r}", file=sys.stderr)
            continue
        split = int(float(ranks))
        narrow = precision == "fp8"
        columns = {
            k: np.array([int(float(p[k])) for p in points], np.int64)
            for k in ("batch_size", "isl", "osl")
        }
        found.append(
            Runs(
                backend=backend,
                model_name=name,
                shape=shape,
                device=replace(device, count=split),
                weight_dtype="fp8" if narrow else "bf16",
                kv="fp8" if narrow and backend == "trtllm" else "bf16",
                ranks=split,
                batch=columns["batch_size"],
                prompt=columns["isl"],
                output=columns["osl"],
                seconds=np.array([float(p["silicon_tpot_ms"]) for p in points]) * 1e-3,
            )
        )
    return found


def fit(runs: Sequence[Runs]) -> dict[str, float]:
    """The step's coefficients: log residuals, soft L1, every group of runs weighted alike."""
    from scipy.optimize import least_squares

    means = np.log([PRIORS[k].value for k in FITTED])
    spreads = np.array([PRIORS[k].spread for k in FITTED])
    held = {k: p.value for k, p in PRIORS.items() if k.startswith("step.")}

    def residuals(logs: Any) -> Any:
        values = held | dict(zip(FITTED, np.exp(logs).tolist(), strict=True))
        found = [
            3 * soft(np.log(r.predict(values) / r.seconds)) / np.sqrt(len(r.seconds)) for r in runs
        ]
        found.append((logs - means) / spreads * 0.1)
        return np.concatenate(found)

    solved = least_squares(residuals, means, diff_step=1e-4, max_nfev=40)
    return held | dict(zip(FITTED, np.exp(solved.x).tolist(), strict=True))


def left_out(runs: Sequence[Runs]) -> dict[tuple[str, str], dict[str, float]]:
    """For each backend and model, coefficients fitted to all other runs."""
    stacks = sorted({r.stack for r in runs})
    return {s: fit([r for r in runs if r.stack != s]) for s in stacks}


def table(
    runs: Sequence[Runs], coefficients: Mapping[tuple[str, str], Mapping[str, float]] | None
) -> list[dict[str, Any]]:
    """Errors by tensor parallelism, in all and by backend."""
    rows = []
    for backend in ("all", *sorted({r.backend for r in runs})):
        for ranks in sorted({r.ranks for r in runs}):
            own = [r for r in runs if r.ranks == ranks and backend in ("all", r.backend)]
            if not own:
                continue
            seconds = np.concatenate([r.seconds for r in own])
            ours = np.concatenate([
                r.predict(coefficients[r.stack] if coefficients else None) for r in own
            ])  # fmt: skip
            roof = np.concatenate([r.roofline() for r in own])
            ratio = ours / seconds
            rows.append({
                "backend": backend,
                "tensor_parallel": ranks,
                "n": len(seconds),
                "median_error": round(float(np.median(np.abs(ratio - 1))), 4),
                "p90_error": round(float(np.quantile(np.abs(ratio - 1), 0.9)), 4),
                "median_ratio": round(float(np.median(ratio)), 4),
                "roofline_median_error": round(float(np.median(np.abs(roof / seconds - 1))), 4),
            })  # fmt: skip
    return rows


def spreads(
    runs: Sequence[Runs], coefficients: Mapping[tuple[str, str], Mapping[str, float]]
) -> dict[str, float]:
    """Half-widths in log that hold eight points of ten, by ranks, with the stack left out.

    Only points whose time is mostly the decode step (70 % and more) say how sure that step is;
    prompts that are read meanwhile are the load's. More ranks never count as surer.
    """
    values: dict[str, float] = {}
    widest = 0.0
    for ranks in sorted({r.ranks for r in runs}):
        logs = [np.zeros(0)]
        for r in runs:
            if r.ranks == ranks:
                decode, load = r.terms(coefficients[r.stack])
                mostly = decode >= 0.7 * (decode + load)
                logs.append(np.log((decode + load) / r.seconds)[mostly])
        widest = max(widest, float(np.quantile(np.abs(np.concatenate(logs)), 0.8)))
        values[f"error.step.tp{ranks}"] = widest
    return values


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    print(f"{'backend':10}{'TP':>3}{'n':>6}{'median':>9}{'p90':>8}{'ratio':>8}{'roofline':>10}")
    for r in rows:
        print(
            f"{r['backend']:10}{r['tensor_parallel']:3}{r['n']:6}{r['median_error']:9.3f}"
            f"{r['p90_error']:8.3f}{r['median_ratio']:8.3f}{r['roofline_median_error']:10.3f}"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="CSV of serving points (see README.md)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--fit", action="store_true", help="fit, and judge each stack left out")
    parser.add_argument("--write", action="store_true", help="with --fit: write the catalog's file")
    parser.add_argument("--date", default="", help="date of the fit, kept in the file")
    options = parser.parse_args(arguments)
    runs = load(options.data)
    if not runs:
        print("error: no usable rows", file=sys.stderr)
        return 2
    if not options.fit:
        rows = table(runs, None)
        if options.format == "json":
            print(json.dumps({"rows": rows}, indent=1))
        else:
            print_table(rows)
        return 0
    values, without = fit(runs), left_out(runs)
    errors = spreads(runs, without)
    rows, strict = table(runs, dict.fromkeys(without, values)), table(runs, without)
    if options.format == "json":
        print(json.dumps({"values": values, "rows": rows, "stack_left_out": strict}, indent=1))
    else:
        print_table(rows)
        print("\nwith the backend and model left out of the fit")
        print_table(strict)
    if options.write:
        about = {
            "applies": "",
            "date": options.date,
            "script": "benchmarks/step_accuracy.py",
            "source": "serving points on H100 published by ai-dynamo/aiconfigurator (Apache-2.0)",
            "rows": sum(len(r.seconds) for r in runs),
        }
        narrow = {"step.share.int8": 0.75, "step.share.int4": 0.61, "step.share.q4_0": 0.61,
                  "step.share.nvfp4": 0.61, "step.share.q8_0": 0.75}  # fmt: skip
        head = [
            "A whole step: matrix products, small kernels, host, collectives, fitted to loaded",
            "serving runs of vLLM, SGLang and TensorRT-LLM; error.step is half a width in log.",
            "Shares of weights below 16 bit relative to bf16: gpt-fast on A100, batch 1 (int8 0.52",
            "and int4 0.42 of bandwidth where bf16 has 0.69).",
        ]
        write(TARGET / "step.toml", toml_document(head, about, {**values, **narrow, **errors}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
