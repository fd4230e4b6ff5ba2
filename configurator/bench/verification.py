"""A recommendation put to the test: exact bytes, and the order of its alternatives.

On the target itself times are compared with the prediction. Elsewhere a time says nothing about
the target, so two things are checked that carry over: the bytes of the cache, exactly, and
whether the geometries come in the predicted order at a size this machine can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from configurator.attention.device import pick_device
from configurator.bench.machine import default_device, machine
from configurator.bench.memory import free_bytes
from configurator.bench.point import cached_bytes
from configurator.bench.points import Point, attention_to
from configurator.bench.sweep import document, measurements, run
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError, show
from configurator.core.kinds import Attention
from configurator.core.kinds.mla import Latent
from configurator.core.report import Measurement
from configurator.core.shapes import geometry
from configurator.core.units import format_seconds
from configurator.interop.audit import ask

__all__ = ["Verification", "geometries", "measure", "verify"]

_LEAST_CONTEXT = 512
_MOST_CACHE_BYTES = 1 << 28
# A verification times these and no more: on every machine tried one of them was the fastest or
# within a few per cent of it, and all geometries have to have their turn.
_GROUPED = ("folded", "products", "v_transposed", "sdpa")
_LATENT = ("absorbed", "absorbed_fused", "absorbed_split")
_CLEAR = 0.15  # predictions closer than this are called equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Measured rows and what they mean. ``bytes_exact`` decides an exit code, times do not."""

    rows: tuple[Measurement, ...]
    sentence: str
    command: str
    bytes_exact: bool
    agreed: int
    compared: int


def geometries(report: Any) -> tuple[list[Attention], dict[str, Any]]:
    """Attention of a report's answer and of its alternatives, and its workload.

    ``report`` is a :class:`configurator.core.report.Report` or anything with its attributes.
    """
    if not hasattr(report, "recommendation"):
        raise UsageError(
            f"report {show(report)} is none; give what recommend() returns, or a list of geometries"
        )
    found: list[Attention] = []
    for r in (report.recommendation, *(o.recommendation for o in report.alternatives)):
        shape = {
            name: getattr(r, name)
            for name in ("d_model", "n_heads", "n_kv_heads", "d_head", "kv_lora_rank",
                         "q_lora_rank", "v_head_dim")
        }  # fmt: skip
        if r.kv_lora_rank:
            shape |= {k: getattr(r, k) for k in ("qk_nope_head_dim", "qk_rope_head_dim")}
            shape |= {"n_kv_heads": 0, "d_head": 0}
        else:
            shape |= {"v_head_dim": 0 if r.v_head_dim == r.d_head else r.v_head_dim}
        attention = geometry(**shape)
        if attention not in found:
            found.append(attention)
    request = report.request
    work = {key: request[key] for key in ("context", "batch", "kv_dtype") if request.get(key)}
    return found, work


def measure(
    report: Any,
    target: str = "host",
    *,
    budget_s: float = 60.0,
    context: int = 8192,
    batch: int = 1,
    kv_dtype: str = "bf16",
    device: str | None = None,
) -> list[Measurement]:
    """Rows of a bounded benchmark of a report, or of a list of geometries, on this machine.

    Args:
        report: a report, or geometries of the core, the one that was chosen first.
        target: where the recommendation is for; ``host`` is this machine.
        budget_s: seconds, about.
        context: tokens, for a list of geometries; a report brings its own.
        batch: sequences, likewise.
        kv_dtype: type of the cache, likewise.
        device: torch's name; the best one here by default.

    Raises:
        UsageError: a cache type or device that is not known, or a size below 1.
        MissingError: a device that this machine has not.
    """
    return list(
        verify(
            report, target, budget_s=budget_s, context=context, batch=batch, kv_dtype=kv_dtype,
            device=device,
        ).rows
    )  # fmt: skip


def verify(
    report: Any,
    target: str = "host",
    *,
    budget_s: float = 60.0,
    context: int = 8192,
    batch: int = 1,
    kv_dtype: str = "bf16",
    device: str | None = None,
) -> Verification:
    """Like :func:`measure`, with the verdict in words and the command to run on the target."""
    shapes: list[Attention] = []
    work: dict[str, Any] = {}
    if isinstance(report, list | tuple):
        shapes = list(report)
        if not shapes or not all(hasattr(a, "score_flops") for a in shapes):
            raise UsageError("geometries are missing; list a GroupedQuery or a Latent at least")
    else:
        shapes, work = geometries(report)
    question = ask(
        context=work.get("context", context),
        batch=work.get("batch", batch),
        kv_dtype=work.get("kv_dtype", kv_dtype),
    )
    context, batch, kv = question.context or context, question.batch, question.kv.name
    if not budget_s > 0:
        raise UsageError(f"budget_s {show(budget_s)} must be above zero; give seconds")
    here = default_device() if device is None else pick_device(device)
    at = scaled(shapes, context, batch, kv, free_bytes(here))
    points = [
        Point(
            attention=attention_to(a), context=at[0], batch=at[1], kv_dtype=kv, device=here,
            formulations=_LATENT if isinstance(a, Latent) else _GROUPED, limit_s=0.3,
        )
        for a in shapes
    ]  # fmt: skip
    held = {point.case: cached_bytes(point) for point in points}
    rows = [
        replace(row, cache_bytes_measured=held[row.case])
        for row in measurements(document(run(points, budget_s=budget_s))["rows"])
    ]
    agreed, compared = order(rows)
    exact = all(r.cache_bytes_measured in (None, r.cache_bytes_predicted) for r in rows)
    elsewhere = target != "host"
    return Verification(
        rows=tuple(rows),
        sentence=_sentence(rows, exact, agreed, compared, at, (context, batch), target, here),
        command=_command(shapes[0], context, batch, kv) if elsewhere or at[0] != context else "",
        bytes_exact=exact,
        agreed=agreed,
        compared=compared,
    )


def scaled(
    shapes: Sequence[Attention], context: int, batch: int, kv: str, free: int
) -> tuple[int, int]:
    """Context and batch at which the largest cache fits an eighth of what is free, and 256 MiB.

    The batch is halved first, then the context, down to 512 tokens: an order found with caches
    much smaller than these would be one of launch times.
    """
    kind = cache_type(kv)
    most = min(_MOST_CACHE_BYTES, free // 8) if free else _MOST_CACHE_BYTES
    per_token = max(int(a.cache_bytes(kind)) for a in shapes)
    while batch > 1 and batch * context * per_token > most:
        batch //= 2
    while context > _LEAST_CONTEXT and batch * context * per_token > most:
        context //= 2
    return context, batch


def order(rows: Sequence[Measurement]) -> tuple[int, int]:
    """Pairs of geometries measured in the predicted order, of those predicted to differ.

    Only the fastest formulation of each counts, of those that other programs did not disturb,
    and only pairs whose predictions are more than 15 % apart: below that the prediction says
    they are equal.
    """
    best: dict[str, Measurement] = {}
    for row in rows:
        if row.status == "ok" and row.measured_s and row.predicted_s:
            known = best.get(row.case)
            if known is None or row.measured_s < (known.measured_s or 0.0):
                best[row.case] = row
    found = [(r.predicted_s or 0.0, r.measured_s or 0.0) for r in best.values()]
    pairs = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if max(a[0], b[0]) > (1 + _CLEAR) * min(a[0], b[0])
    ]
    return sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs), len(pairs)


def _sentence(
    rows: Sequence[Measurement],
    exact: bool,
    agreed: int,
    compared: int,
    at: tuple[int, int],
    asked: tuple[int, int],
    target: str,
    device: str,
) -> str:
    name = machine(device).target.title or device
    checked = len({r.case for r in rows if r.cache_bytes_measured is not None})
    said = [
        f"cache bytes are exact in {checked} of {checked} geometries"
        if exact
        else "measured cache bytes DIFFER from the prediction",
        f"{agreed} of {compared} pairs of geometries come in the predicted order"
        if compared
        else "no two geometries could be compared",
    ]
    late = len({r.case for r in rows if r.status.startswith("not run")})
    busy = sum(r.status == "disturbed" for r in rows)
    if late:
        said.append(f"{late} geometries were not timed within the budget")
    if busy:
        said.append(f"{busy} rows were disturbed by other programs and do not count")
    timed = [r for r in rows if r.case == rows[0].case and r.measured_s and r.status == "ok"]
    if target == "host" and at == asked and timed:
        best = min(timed, key=lambda r: r.measured_s or 0.0)
        said.append(
            f"the first takes {format_seconds(best.measured_s)} a layer, predicted "
            f"{format_seconds(best.predicted_s)}"
        )
    size = f"context {at[0]:,}, batch {at[1]}"
    where = name if target == "host" else f"{name}, which is not {target}"
    scale = f" at {size}" if at == asked else f" scaled down to {size}"
    end = "" if target == "host" else f" Times here say nothing about {target}: run there."
    return f"Measured on {where},{scale}: {'; '.join(said)}.{end}"


def _command(attention: Any, context: int, batch: int, kv: str) -> str:
    """The benchmark of the chosen geometry at full size, to be run on the target."""
    names = ["d_model", "n_heads"]
    if hasattr(attention, "kv_lora_rank"):
        names += ["kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                  "v_head_dim"]  # fmt: skip
    else:
        names += ["n_kv_heads", "d_head", "v_head_dim"]
    flags = [
        f"--{n.replace('_', '-')} {getattr(attention, n)}" for n in names if getattr(attention, n)
    ]
    return (
        f"mha-configurator bench {' '.join(flags)} --context {context} --batch {batch} "
        f"--kv-dtype {kv} --target host"
    )
