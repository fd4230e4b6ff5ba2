"""How near each decode formulation comes to what the machine can read, in one run.

The two shapes of the goal: MHA in fp32 and GQA with 8 KV heads in bf16, 32 query heads of 128 at
8,192 tokens. Each round measures what can be read and then every formulation, so that a rate and
its ceiling were taken seconds apart; the table gives the median of the rounds, and their range.

    python benchmarks/formulations.py [--rounds 3] [--compile] [--output outputs/measurements]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from _report import today

from configurator.bench.ceilings import measure
from configurator.bench.machine import default_device, environment, machine
from configurator.bench.point import rows_of
from configurator.bench.points import Point, attention_to
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
        point = Point(attention=shape, context=8192, kv_dtype=dtype, device=device, limit_s=0.5)
        found += [point, replace(point, compiled=True)] if compiled else [point]
    return found


def rounds(device: str, compiled: bool, count: int) -> list[dict[str, Any]]:
    """Rows of every round, each with the share of what that round read at best."""
    here, found = machine(device), []
    with torch.inference_mode():
        for number in range(count):
            read = measure(device, here.cache_bytes, limit_s=0.3).read_bytes_per_s
            for point in points(device, compiled and number == 0):
                for row in rows_of(point, here):
                    if row.measured_s and row.bytes_per_s:
                        extra = {"round": number, "read": read, "share": row.bytes_per_s / read}
                        found.append(asdict(row) | extra)
    return found


def lines(rows: list[dict[str, Any]], found: dict[str, Any]) -> list[str]:
    reads = sorted({r["read"] / 1e9 for r in rows})
    said = [
        "# Decode formulations against the bandwidth of the same run",
        "",
        f"{found['device_name']}, {found['cores']} cores, {found['threads']} threads, "
        f"torch {found['torch']}; priority {found['priority']}, load {found['load']}. "
        "One layer, 32 query heads of 128, context 8,192, batch 1. "
        f"Read at best, by round: {', '.join(f'{r:.1f}' for r in reads)} GB/s. "
        "Shares are the median of the rounds, with their range.",
    ]
    for dtype, kv_heads, goal in GOALS:
        names: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["case"].endswith(dtype):
                names.setdefault(row["formulation"], []).append(row)
        share = {n: statistics.median(r["share"] for r in own) for n, own in names.items()}
        order = sorted(names, key=lambda n: -share[n])
        met = "met" if share[order[0]] >= goal else "missed"
        said += [
            "",
            f"## {kv_heads} KV heads, {dtype}",
            "",
            f"Goal: {goal:.0%} of what was read. Reached: {share[order[0]]:.0%} ({met}).",
            "",
            "| formulation | path that ran | median | GB/s | share | range | said |",
            "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        ]
        for name in order:
            own = names[name]
            middle = sorted(own, key=lambda r: r["share"])[len(own) // 2]
            low, high = min(r["share"] for r in own), max(r["share"] for r in own)
            notes = dict.fromkeys(n for r in own for n in (r["status"], *r["flags"]))
            said.append(
                f"| {name} | {middle['path']} | {1e3 * middle['measured_s']:.2f} ms "
                f"| {middle['bytes_per_s'] / 1e9:.1f} | {share[name]:.0%} "
                f"| {low:.0%} to {high:.0%} | {'; '.join(notes)} |"
            )
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="compiled ones too, in one round")
    parser.add_argument("--output", type=Path, help="folder for the table and the rows")
    args = parser.parse_args()
    rows = rounds(args.device, args.compile, args.rounds)
    found = environment(args.device, machine(args.device).ceilings)
    text = "\n".join(lines(rows, found)) + "\n"
    sys.stdout.write(text)
    if args.output:
        stem = args.output / f"formulations_{device_slug(found)}_{today()}"
        stem.with_suffix(".md").write_text(text)
        document = {"rows": rows, "environment": found}
        stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
