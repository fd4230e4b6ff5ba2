"""The decision that times serve: of two geometries at one point, which is faster.

Pairs share device, framework, kernel, cache type, batch, context, query heads, head width and
window, and differ in KV heads (or one is MLA, the other GQA with 8 KV heads of 128), and their
measured times differ by more than 10 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from timed_rows import Group

APART = 1.10


def _points(groups: Sequence[Group], predicted: Sequence[Any]) -> list[dict[str, Any]]:
    points = []
    for g, times in zip(groups, predicted, strict=True):
        ideal = g.roofline()
        c = g.columns
        for i, seconds in enumerate(g.seconds):
            points.append({
                "device": g.device_name,
                "framework": g.framework,
                "op": g.op,
                "kv": g.kv,
                "batch": int(c["batch"][i]),
                "context": int(c["context"][i]),
                "heads": int(c["n_heads"][i]),
                "kv_heads": int(c["n_kv_heads"][i]),
                "d_head": int(c["d_head"][i]),
                "window": int(c["window"][i]),
                "seconds": float(seconds),
                "ours": float(times[i]),
                "roofline": float(ideal[i]),
            })  # fmt: skip
    return points


def _right(a: Mapping[str, Any], b: Mapping[str, Any], model: str) -> bool:
    return bool((a[model] < b[model]) == (a["seconds"] < b["seconds"]))


def _pairs(points: Sequence[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Label, one point, the other."""
    by_point: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    by_latent: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for p in points:
        if p["op"] == "decode":
            key = tuple(p[k] for k in ("device", "framework", "kv", "batch", "context", "heads",
                                       "d_head", "window"))  # fmt: skip
            by_point.setdefault(key, []).append(p)
        plain = p["window"] == 0 and p["d_head"] == 128 and p["kv_heads"] == 8
        if p["op"] == "decode_mla" or (p["op"] == "decode" and plain):
            key = tuple(p[k] for k in ("device", "framework", "kv", "batch", "context", "heads"))
            by_latent.setdefault(key, []).append(p)
    found = [
        ("KV heads", a, b)
        for same in by_point.values()
        for a, b in combinations(same, 2)
        if a["kv_heads"] != b["kv_heads"]
    ]
    found += [
        ("MLA or GQA-8", a, b)
        for same in by_latent.values()
        for a, b in combinations(same, 2)
        if a["op"] != b["op"] and a["heads"] in (32, 64, 128)
    ]
    return [
        (label, a, b)
        for label, a, b in found
        if max(a["seconds"], b["seconds"]) > APART * min(a["seconds"], b["seconds"])
    ]


def decision_rows(
    groups: Sequence[Group], coefficients: Callable[[Group], Mapping[str, float] | None]
) -> list[dict[str, Any]]:
    """Pairs and the share named right, by kind of pair, device and framework, and in all."""
    wanted = [g for g in groups if g.op in ("decode", "decode_mla")]
    pairs = _pairs(_points(wanted, [g.predict(coefficients(g)) for g in wanted]))
    rows = []
    labels = sorted({label for label, _, _ in pairs})
    for label in labels:
        mine = [(a, b) for kind, a, b in pairs if kind == label]
        places = sorted({(a["device"], a["framework"]) for a, _ in mine})
        for place in [*places, ("all", "all")]:
            here = [
                (a, b)
                for a, b in mine
                if place == ("all", "all") or (a["device"], a["framework"]) == place
            ]
            rows.append({
                "pair": label,
                "device": place[0],
                "framework": place[1],
                "n": len(here),
                "ours": round(float(np.mean([_right(a, b, "ours") for a, b in here])), 4),
                "roofline": round(float(np.mean([_right(a, b, "roofline") for a, b in here])), 4),
            })  # fmt: skip
    return rows


def print_decision(rows: Sequence[Mapping[str, Any]]) -> None:
    """The rows as a table."""
    for r in rows:
        place = f"{r['device']} {r['framework']}"
        shares = f"ours {r['ours']:.3f}  roofline {r['roofline']:.3f}"
        print(f"{r['pair']:14}{place:24}n {r['n']:5}  {shares}")
