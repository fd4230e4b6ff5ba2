"""Measure one point: allocate its cache, check its bytes, time every formulation, write rows.

:func:`measure_point` is the function that runs on a worker: plain values in, plain values out.
Nothing it meets ends a sweep: memory that is not there, a form that a device does not have and
a result that is wrong are rows with their status.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from configurator.attention.cache import allocate, held_bytes, torch_dtype
from configurator.bench.clock import judge, take
from configurator.bench.formulations import Formulation, Unsupported, formulations
from configurator.bench.machine import Machine, default_device, environment, machine
from configurator.bench.memory import free_bytes, is_out_of_memory, release, requested_bytes
from configurator.bench.paths import observed_path, sdpa_path
from configurator.bench.points import Point, attention_from
from configurator.bench.prefill import PREFILL, expanded
from configurator.bench.problem import Problem, make, needed_bytes
from configurator.bench.timers import synchronise, timer_for
from configurator.core.dtypes import CacheType, cache_type
from configurator.core.errors import one_line
from configurator.core.flops import attended_pairs
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.latency import interval, predict_latency
from configurator.core.report import Measurement

__all__ = ["DEADLINE", "OverBudget", "cached_bytes", "measure_point", "rows_of"]

# When the run that a point belongs to must end, on the clock of time.monotonic().
DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)

_CLOSE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 4e-2}
_CHECKED_QUERIES = 64


class OverBudget(RuntimeError):  # noqa: N818 - an answer, not a failure
    """A point was not begun: what is left of the budget is too short for it."""


def measure_point(item: dict[str, Any]) -> dict[str, Any]:
    """Rows of one point and the environment they were measured in.

    Raises :class:`OverBudget` where the run's deadline would be passed by far.
    """
    point = Point.from_item(item)
    if point.device == "best":
        point = replace(point, device=default_device())
    with torch.inference_mode():
        here = machine(point.device)
        until, need = DEADLINE.get(), cost_s(point, here)
        left = None if until is None else until - time.monotonic()
        if left is not None and need > max(left, 0.0):
            raise OverBudget(f"takes about {need:.0f} s and {max(left, 0.0):.0f} s are left")
        rows = [asdict(row) for row in rows_of(point, here)]
    found = environment(point.device, here.ceilings)
    found["predictions"] = here.target.note or ", ".join(here.target.sources)
    return {"rows": rows, "environment": found}


def cost_s(point: Point, here: Machine) -> float:
    """Seconds that a point takes, roughly: filling memory, warm-up and samples of every form.

    Forms are counted at three times the predicted time of the best, four calls each at least.
    """
    if point.compiled:
        return 45.0
    one = _predicted(point, here) or 0.0
    forms = len(point.formulations) or 8
    fill = (1.25 * here.cache_bytes + 3 * point.cache_bytes) / here.ceilings.copy_bytes_per_s
    return 0.3 + fill + forms * max(0.15 * point.limit_s, 4 * 3 * one)


def _work(point: Point) -> dict[str, Any]:
    """A point as arguments of the core's prediction."""
    names = ("phase", "batch", "context", "kv_dtype", "window")
    return {name: getattr(point, name) for name in names}


def _predicted(point: Point, here: Machine) -> float | None:
    attention = attention_from(point.attention)
    seconds = float(predict_latency(attention, here.target, **_work(point)))
    return seconds if seconds == seconds else None


def rows_of(point: Point, here: Machine, free: int | None = None) -> Iterator[Measurement]:
    """Rows of one point; ``free`` is the memory it may take (what the system has, if None)."""
    blank = _blank(point, here)
    kv = cache_type(point.kv_dtype)
    room = free_bytes(point.device) if free is None else free
    attention = attention_from(point.attention)
    if room and point.cache_bytes > room:
        yield replace(blank, status=_refused(point.cache_bytes, room))
        return
    why = _not_timed(attention, kv)
    if why:
        measured = cached_bytes(point)
        status = "bytes only" if measured == point.cache_bytes else "bytes differ"
        yield replace(blank, cache_bytes_measured=measured, status=status, flags=(why,))
        return
    need = needed_bytes(attention, kv, point.batch, point.tokens)
    if room and need > room:
        yield replace(blank, status=_refused(need, room))
        return
    try:
        yield from _timed(point, here, blank, max(room - need, 0) // 2 if room else 1 << 62)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        yield replace(blank, status="out of memory: the allocator refused")
    finally:
        release(point.device)


def _not_timed(attention: Attention, kv: CacheType) -> str:
    """Why only the bytes of a cache can be checked; empty where its attention can be timed."""
    if torch_dtype(kv.k.name) is None or torch_dtype(kv.v.name) is None:
        return f"torch has no arithmetic for a {kv.name} cache"
    if not isinstance(attention, GroupedQuery | Latent):
        return "there is no formulation for this kind of attention"
    return "the sparse indexer is not timed" if getattr(attention, "index_head_dim", 0) else ""


def _refused(need: int, room: int) -> str:
    return f"out of memory: needs {need:,} bytes, {room:,} are free"


def _blank(point: Point, here: Machine) -> Measurement:
    attention = attention_from(point.attention)
    sure = interval(attention, here.target, **_work(point))
    return Measurement(
        case=point.case,
        formulation="",
        path="",
        phase=point.phase,
        cache_bytes_predicted=point.cache_bytes,
        cache_bytes_measured=None,
        predicted_s=_predicted(point, here),
        measured_s=None,
        spread_s=None,
        bytes_per_s=None,
        share_of_bandwidth=None,
        status="",
        batch=point.batch,
        context=point.context,
        projection=attention.projection,
        device=here.target.title or here.target.name,
        low=float(sure.low),
        high=float(sure.high),
    )


def _timed(point: Point, here: Machine, blank: Measurement, room: int) -> Iterator[Measurement]:
    attention = attention_from(point.attention)
    kv = cache_type(point.kv_dtype)
    decode = point.phase == "decode"
    cached = cached_bytes(point)
    p = make(
        attention if decode else expanded(attention),
        kv,
        batch=point.batch,
        context=point.tokens,
        queries=1 if decode else point.tokens,
        causal=not decode,
        device=point.device,
        cache_bytes=here.cache_bytes if decode else 0,
        room_bytes=room,
    )
    blank = replace(blank, cache_bytes_measured=cached)
    if cached != point.cache_bytes:
        yield replace(blank, status="bytes differ")
        return
    wanted = p.reference(_CHECKED_QUERIES)
    for form in formulations(p.latent) if decode else PREFILL:
        if point.formulations and form.name not in point.formulations:
            continue
        if not point.formulations and form.compiles != point.compiled:
            continue
        extra = int(form.extra_caches(p.group) * p.cache_bytes)
        free = free_bytes(point.device)
        row = replace(blank, formulation=form.name)
        if free and extra > free:
            yield replace(row, status=_refused(extra, free))
            continue
        try:
            yield _one(form, p, point, here, row, wanted)
        except Unsupported:
            continue
        except (RuntimeError, MemoryError, TypeError) as error:
            if is_out_of_memory(error):
                yield replace(row, status="out of memory: the allocator refused")
            else:
                text = one_line(error, 160)
                yield replace(row, status=f"failed: {type(error).__name__}: {text}")
            release(point.device)


def cached_bytes(point: Point) -> int:
    """Bytes really allocated for this point's cache (a prompt fills the cache of its geometry)."""
    attention, kv = attention_from(point.attention), cache_type(point.kv_dtype)
    before = requested_bytes(point.device)
    taken = allocate(attention, kv, batch=point.batch, tokens=point.tokens, device=point.device)
    after = requested_bytes(point.device)
    held = held_bytes(taken)
    return held if before is None or after is None else after - before if held else 0


def _one(
    form: Formulation, p: Problem, point: Point, here: Machine, row: Measurement, wanted: Tensor
) -> Measurement:
    call: Callable[[int], Tensor] = form.build(p)
    start = time.perf_counter()
    first = call(0)
    synchronise(point.device)
    compiling = time.perf_counter() - start
    found = p.value_space(first)[:, :, -wanted.shape[2] :]
    apart = float((found - wanted).norm() / wanted.norm())
    path = observed_path(lambda: call(0), point.device)
    row = replace(row, path=path)
    if not apart <= _CLOSE[p.compute]:
        return replace(row, status=f"wrong result: {apart:.1e} from the reference")
    samples = take(call, timer_for(point.device, here.cache_bytes), limit_s=point.limit_s)
    decode = point.phase == "decode"
    verdict = judge(
        samples.trusted(),
        warmup=0,
        bytes_read=p.cache_bytes if decode else 0,
        flops=0.0 if decode else prompt_flops(point),
        limit_bytes_per_s=here.limit_bytes_per_s,
        limit_flops_per_s=here.limit_flops_per_s,
        cache_bytes=0 if point.device.startswith("cuda") else here.cache_bytes,
        working_set_bytes=p.working_set_bytes,
    )
    in_cache = any("last-level cache" in flag for flag in verdict.flags)
    impossible = any("device limit" in flag for flag in verdict.flags)
    flags = (*verdict.flags, *samples.flags(), *_path_flags(form, p, path))
    if form.compiles:
        flags = (*flags, f"compiled in {compiling:.1f} s, not counted")
    rate = verdict.bytes_per_s
    comparable = rate is not None and not in_cache and here.ceilings.calm
    return replace(
        row,
        measured_s=verdict.median_s,
        spread_s=verdict.spread_s,
        bytes_per_s=rate,
        share_of_bandwidth=(rate or 0.0) / here.ceilings.read_bytes_per_s if comparable else None,
        status="suspect" if impossible else "ok" if samples.calm else "disturbed",
        flags=flags,
    )


def prompt_flops(point: Point) -> float:
    """FLOPs that a causal prompt of this point cannot do without: its scores and their sum."""
    each = attention_from(point.attention).score_flops("prefill")
    return float(point.batch * attended_pairs(point.tokens, "full", 0) * each)


def _path_flags(form: Formulation, p: Problem, seen: str) -> tuple[str, ...]:
    """What to say of the path that ran: a slow one is never passed over in silence."""
    said = []
    if form.name in ("sdpa", "absorbed_sdpa") and not p.device.startswith("mps"):
        k = p.slots[0][0].shape
        v = p.slots[0][-1].shape[-1] if not p.latent else k[-1] - 1
        name = str(p.compute).removeprefix("torch.")
        device = _device_name(p.device)
        predicted = sdpa_path(device, name, p.query.shape[1], k[1], k[-1], v, p.queries, k[2])
        if predicted.kind not in seen:
            said.append(f"torch was expected to take: {predicted}")
        elif predicted.advice:
            said.append(f"advise {predicted.advice}")
    if seen.startswith("math"):
        said.append("slow path: torch fell back to its math kernel")
    if p.compute != p.slots[0][0].dtype:
        said.append("the cache is converted at every step")
    return tuple(said)


def _device_name(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    if torch.version.hip:
        return "rocm"
    major, minor = torch.cuda.get_device_capability(device)
    return f"cuda sm{major}{minor}"
