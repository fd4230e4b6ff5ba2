"""How near each decode formulation comes to what the machine can read, in one run.

The two shapes of the goal: MHA in fp32 and GQA with 8 KV heads in bf16, 32 query heads of 128 at
8,192 tokens. Ceilings are measured before and after; shares are of the faster of the two, so a
disturbed ceiling cannot flatter. Run it on a machine that does nothing else:

    python benchmarks/formulations.py [--compile] [--output outputs/measurements]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import torch
from _report import today

from configurator.bench.ceilings import measure
from configurator.bench.machine import Machine, default_device, environment, machine
from configurator.bench.point import rows_of
from configurator.bench.points import Point, attention_to
from configurator.core.report import Measurement
from configurator.core.shapes import geometry

GOALS = (("fp32", 32, 0.70), ("bf16", 8, 0.50))


def device_slug(found: dict[str, object]) -> str:
    """A device in a file's name, as the other benchmarks write it: ``2-core-intel-xeon``."""
    words = re.sub(r"\(.*?\)|processor|cpu|nvidia", " ", str(found["device_name"]).lower())
    name = "-".join(re.findall(r"[a-z0-9]+", words)) or "machine"
    return name if found["device"] != "cpu" else f"{found['cores']}-core-{name}"


def points(device: str, compiled: bool) -> list[Point]:
    found = []
    for dtype, kv_heads, _ in GOALS:
        shape = attention_to(geometry(d_model=4096, n_heads=32, n_kv_heads=kv_heads))
        point = Point(attention=shape, context=8192, kv_dtype=dtype, device=device, limit_s=1.0)
        found += [point, replace(point, compiled=True)] if compiled else [point]
    return found


def timed(here: Machine, device: str, compiled: bool) -> list[Measurement]:
    rows: list[Measurement] = []
    with torch.inference_mode():
        for point in points(device, compiled):
            rows += rows_of(point, here)
    return rows


def lines(rows: list[Measurement], read: float, found: dict[str, object]) -> list[str]:
    said = [
        "# Decode formulations against the bandwidth of the same run",
        "",
        f"{found['device_name']}, {found['cores']} cores, {found['threads']} threads, "
        f"torch {found['torch']}. One layer, 32 query heads of 128, context 8,192, batch 1. "
        f"Priority {found['priority']}, load {found['load']}. "
        f"The machine read {read / 1e9:.1f} GB/s at best in this run.",
    ]
    for dtype, kv_heads, goal in GOALS:
        own = [r for r in rows if r.measured_s and r.case.endswith(dtype)]
        own.sort(key=lambda r: r.measured_s or 0.0)
        best = (own[0].bytes_per_s or 0.0) / read
        met = "met" if best >= goal else "missed"
        said += [
            "",
            f"## {kv_heads} KV heads, {dtype}",
            "",
            f"Goal: {goal:.0%} of what was read. Reached: {best:.0%} ({met}).",
            "",
            "| formulation | path that ran | median | spread | GB/s | share | said |",
            "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        ]
        said += [
            f"| {r.formulation} | {r.path} | {1e3 * (r.measured_s or 0):.2f} ms "
            f"| {1e3 * (r.spread_s or 0):.2f} ms | {(r.bytes_per_s or 0) / 1e9:.1f} "
            f"| {(r.bytes_per_s or 0) / read:.0%} | {'; '.join((r.status, *r.flags))} |"
            for r in own
        ]
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--output", type=Path, help="folder for the table and the rows")
    args = parser.parse_args()
    here = machine(args.device)
    rows = timed(here, args.device, args.compile)
    after = measure(args.device, here.cache_bytes)
    read = max(here.ceilings.read_bytes_per_s, after.read_bytes_per_s)
    found = environment(args.device, here.ceilings) | {"ceilings_after": asdict(after)}
    text = "\n".join(lines(rows, read, found)) + "\n"
    sys.stdout.write(text)
    if args.output:
        stem = args.output / f"formulations_{device_slug(found)}_{today()}"
        stem.with_suffix(".md").write_text(text)
        document = {"rows": [asdict(r) for r in rows], "environment": found}
        stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
