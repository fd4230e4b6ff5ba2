"""How fast candidates go through the rules, costs, latency and quality, as the grid grows.

    python benchmarks/search.py                       10^3 ... 10^7 rows, a table and a JSON file
    python benchmarks/search.py --most 1e5            only up to 10^5

A candidate is a geometry in a model at a context and a batch. The grid is laid out in two ways:
``product`` has geometries as one axis and workloads (contexts and batches) as the other, and lets
numpy broadcast, so that what depends on the geometry alone is done once for each; ``flat`` has
every field as a column of its own. Both are chunked, and only the Pareto front is kept.

Every size runs in a process of its own on one thread: seconds are of the processor, memory is the
process's peak (imports included, shown apart). Rows per second count rules, costs, latency,
quality and the front; building the columns is shown apart.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One thread, said before anything heavy is imported.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"

import numpy as np  # noqa: E402 - after the threads are set
from _report import environment, keep, today  # noqa: E402

CHUNK = 1 << 16
GOAL_ROWS_PER_S = 5e6
# 11.8 million different candidates, awkward ones included for the rules to refuse.
GEOMETRY = {
    "shared": 2 ** np.arange(6),
    "d_head": np.array([64, 128]),
    "d_model": 512 * np.arange(1, 33),
    "n_layers": 4 * np.arange(3, 19),
    "widening": np.arange(8, 24),
}
WORKLOAD = {"batch": 2 ** np.arange(10), "context": 512 * 2 ** np.arange(12)}
WORKLOADS = math.prod(map(len, WORKLOAD.values()))
Columns = dict[str, np.ndarray]


def columns(axes: dict[str, np.ndarray], start: int, stop: int) -> Columns:
    """Rows ``start`` to ``stop`` of the axes' product, in an order that walks all axes early."""
    total = math.prod(map(len, axes.values()))
    rest = np.arange(start, stop, dtype=np.int64) * 7_919 % total  # prime, so a permutation
    found = {}
    for name, values in axes.items():
        rest, digit = np.divmod(rest, len(values))
        found[name] = values.astype(np.int64)[digit]
    return found


def cases(layout: str, start: int, stop: int, device: Any) -> Iterator[Any]:
    """Rows ``start`` to ``stop``: seven eighths as grouped-query attention, the rest as MLA."""
    if layout == "flat":
        found = columns(GEOMETRY | WORKLOAD, start, stop)
        work = {name: found.pop(name) for name in WORKLOAD}
        latent = np.arange(start, stop) % 8 == 0
        for kind in (False, True):
            rows = latent == kind
            if rows.any():
                own = {n: c[rows] for n, c in found.items()}
                yield case(own, {n: c[rows] for n, c in work.items()}, kind, device)
        return
    found = columns(GEOMETRY, start // WORKLOADS, -(-stop // WORKLOADS))
    work = {n: c[None, :] for n, c in columns(WORKLOAD, 0, WORKLOADS).items()}
    latent = np.arange(start // WORKLOADS, -(-stop // WORKLOADS)) % 8 == 0
    for kind in (False, True):
        if (latent == kind).any():
            yield case(
                {n: c[latent == kind][:, None] for n, c in found.items()}, work, kind, device
            )


def case(own: Columns, work: Columns, latent: bool, device: Any) -> Any:
    from configurator.core.case import Case, FeedForward, Workload
    from configurator.core.kinds.gqa import GroupedQuery
    from configurator.core.kinds.mla import Latent
    from configurator.core.shapes import decoder

    width, heads = own["d_model"], np.maximum(own["d_model"] // own["d_head"], 1)
    attention: Any = (
        Latent(d_model=width, n_heads=heads, kv_lora_rank=4 * own["d_head"])
        if latent
        else GroupedQuery(
            d_model=width,
            n_heads=heads,
            n_kv_heads=np.maximum(heads // own["shared"], 1),
            d_head=own["d_head"],
        )
    )
    shape = decoder(
        attention,
        n_layers=own["n_layers"],
        feed_forward=FeedForward(d_model=width, d_ff=width * own["widening"] // 4),
        vocab_size=100_352,
    )
    return Case(shape=shape, workload=Workload(**work), device=device)


def chunks(rows: int) -> Iterator[tuple[int, int]]:
    size = CHUNK // WORKLOADS * WORKLOADS
    for start in range(0, rows, size):
        yield start, min(start + size, rows)


def peak_bytes() -> int:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def search(layout: str, wanted: int) -> dict[str, Any]:
    """One grid of at least ``wanted`` candidates, chunk by chunk; the front of all at the end."""
    from configurator import device
    from configurator.core import cost
    from configurator.core.quality import penalty
    from configurator.core.step import decode_seconds
    from configurator.front import pareto
    from configurator.rulebook import admissible, rules

    parts: dict[str, Any] = {
        "rules": admissible,
        "cache": cost.cache_bytes,
        "latency": decode_seconds,
        "quality": lambda case: penalty(case.attention).nats,
    }
    target = device("h100-sxm")
    for warm in cases(layout, 0, 8 * WORKLOADS, target):  # imports and catalogs are loaded once
        for part in parts.values():
            part(warm)
    imports_bytes = peak_bytes()
    took = dict.fromkeys(("building", *parts, "front"), 0.0)
    front: list[np.ndarray] = [np.empty(0)] * 3
    rows = admitted = 0
    for start, stop in chunks(wanted):
        clock = time.process_time()
        found = list(cases(layout, start, stop, target))
        took["building"] += time.process_time() - clock
        for one in found:
            judged = {}
            for name, part in parts.items():
                clock = time.process_time()
                judged[name] = part(one)
                took[name] += time.process_time() - clock
            clock = time.process_time()
            good, *costs = (c.ravel() for c in np.broadcast_arrays(*judged.values()))
            rows, admitted = rows + good.size, admitted + int(good.sum())
            keep = pareto(*costs, among=good)
            front = [np.concatenate([f, c[keep]]) for f, c in zip(front, costs, strict=True)]
            best = pareto(*front)
            front = [f[best] for f in front]
            took["front"] += time.process_time() - clock
    counted = sum(seconds for name, seconds in took.items() if name != "building")
    return {
        "layout": layout,
        "rows": rows,
        "rules": len(rules()),
        "admitted": admitted,
        "front": len(front[0]),
        "seconds": counted,
        "rows_per_s": rows / counted,
        "ns_per_row": {name: 1e9 * seconds / rows for name, seconds in took.items()},
        "peak_bytes": peak_bytes(),
        "imports_bytes": imports_bytes,
    }


def fronts(most: int) -> list[dict[str, Any]]:
    """The front alone, on three costs drawn at random: no order among them helps it."""
    from configurator.front import pareto

    found = []
    n = 1000
    while n <= most:
        draws = np.random.default_rng(n).random((3, n))
        clock = time.process_time()
        size = int(pareto(*draws).sum())
        found.append({"rows": n, "front": size, "seconds": time.process_time() - clock})
        n *= 10
    return found


def child(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def markdown(report: dict[str, Any]) -> str:
    env, sizes = report["environment"], report["sizes"]
    lines = [
        "# Search: candidates through rules, costs, latency and quality",
        "",
        f"{env['processor']}, {env['cores']} cores, one used; Python {env['python']}, "
        f"numpy {env['packages']['numpy']}; {sizes[0]['rules']} rules; chunks of "
        f"{CHUNK:,} rows; {report['date']}. Made by `python benchmarks/search.py`, which says "
        "what is counted.",
        "",
        "| layout | rows | admitted | front | seconds | rows/s | peak memory | of it imports |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for s in sizes:
        lines.append(
            f"| {s['layout']} | {s['rows']:,} | {s['admitted']:,} | {s['front']:,} "
            f"| {s['seconds']:.3f} | {s['rows_per_s']:,.0f} | {s['peak_bytes'] / 2**20:,.0f} MiB "
            f"| {s['imports_bytes'] / 2**20:,.0f} MiB |"
        )
    last = {s["layout"]: s for s in sizes}
    reached = ", ".join(f"{n} {s['rows_per_s'] / GOAL_ROWS_PER_S:.0%}" for n, s in last.items())
    peak = max(s["peak_bytes"] for s in last.values())
    lines += [
        "",
        f"Goal: {GOAL_ROWS_PER_S:,.0f} rows/s on one core; reached at the largest size: {reached}. "
        f"Goal: 10^7 rows under 2 GiB; the largest grids here peaked at {peak / 2**30:.2f} GiB.",
        "",
        "Where a row's time goes at the largest size, in ns:",
        "",
        "| layout | " + " | ".join(sizes[0]["ns_per_row"]) + " |",
        "|---|" + "---:|" * len(sizes[0]["ns_per_row"]),
    ]
    for name, s in last.items():
        lines.append(
            f"| {name} | " + " | ".join(f"{v:.0f}" for v in s["ns_per_row"].values()) + " |"
        )
    lines += [
        "",
        "The front alone, three independent random costs (the worst case: nothing is correlated):",
        "",
        "| rows | front | seconds | times the row before | n log n would be |",
        "|---:|---:|---:|---:|---:|",
    ]
    before = None
    for f in report["fronts"]:
        grown = f"{f['seconds'] / before['seconds']:.1f}" if before else ""
        ideal = (
            f"{f['rows'] * math.log(f['rows']) / (before['rows'] * math.log(before['rows'])):.1f}"
            if before
            else ""
        )
        lines.append(f"| {f['rows']:,} | {f['front']:,} | {f['seconds']:.4f} | {grown} | {ideal} |")
        before = f
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most", type=float, default=1e7, help="largest grid (default 1e7)")
    parser.add_argument("--output", type=Path, help="a folder, or a file's name")
    parser.add_argument("--rows", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--layout", default="product", help=argparse.SUPPRESS)
    parser.add_argument("--fronts", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rows or given.fronts:
        found: Any = (
            search(given.layout, int(given.rows)) if given.rows else fronts(int(given.fronts))
        )
        print(json.dumps(found))
        return

    sizes = [10**k for k in range(3, 8) if 10**k <= given.most]
    report = {
        "date": today(),
        "environment": environment(),
        "sizes": [
            child("--layout", layout, "--rows", str(size))
            for layout in ("product", "flat")
            for size in sizes
        ],
        "fronts": child("--fronts", str(min(given.most, 1e6))),
    }
    keep("search", report, markdown(report), given.output)


if __name__ == "__main__":
    main()
