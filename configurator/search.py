"""The grid of geometries inside a model frame, as columns, and what each of them costs.

A grid is one ``Case`` whose attention holds numpy columns: the same formulas, rules and latency
model that judge one case judge them all. ``row`` turns one row back into a case of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from configurator.budget import Frame, fit_feed_forward
from configurator.core import cost
from configurator.core.case import Case, Device, Workload
from configurator.core.columns import maximum
from configurator.core.dtypes import dtype
from configurator.core.initialization import wants_qk_norm
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward, ModelShape
from configurator.core.quality import penalty
from configurator.core.shapes import decoder, encoder, encoder_decoder
from configurator.core.step import decode_seconds
from configurator.rulebook import admissible

__all__ = ["LATENT_SETS", "Grid", "Table", "grid", "only", "revisit", "row", "shape_of", "tabulate",
           "work_columns"]  # fmt: skip

# (nope, rope, value, rank, query rank): shapes with fast kernels first (DeepSeek-V2/V3, FlashMLA;
# FlashInfer's 64/64/128/256 halves them). The smaller rank of each width is extrapolated quality.
LATENT_SETS = ((128, 64, 128, 512), (64, 32, 64, 256), (128, 64, 128, 256))
_QUERY_RANK_FROM = 5120
_MOST_KV_HEADS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Candidates of one kind: a case with columns, and how many rows it has."""

    case: Case
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Costs of all candidates of all kinds, row by row; ``grid`` and ``row`` say where from.

    Bytes, seconds and nats; ``fits`` and ``admissible`` are truths. ``projection`` is 0 MHA,
    1 GQA, 2 MQA, 3 MLA. ``device_bytes`` is the cache on the busiest device, ``room_bytes`` what
    the heaviest candidate's weights leave for it: feed-forward widths are rounded, and a
    candidate must not win because its own rounding left it a few bytes more;
    ``light_room_bytes`` is the same with weights in 8 bits.
    """

    grids: tuple[Grid, ...]
    grid: np.ndarray
    row: np.ndarray
    projection: np.ndarray
    d_head: np.ndarray
    n_heads: np.ndarray
    n_kv_heads: np.ndarray
    kv_lora_rank: np.ndarray
    cache_bytes: np.ndarray
    device_bytes: np.ndarray
    room_bytes: np.ndarray
    light_room_bytes: np.ndarray
    decode_s: np.ndarray
    penalty_nats: np.ndarray
    expected_nats: np.ndarray
    fits: np.ndarray
    admissible: np.ndarray
    excluded: np.ndarray | bool = False

    def case(self, index: int) -> Case:
        """One candidate as a case of plain numbers."""
        one: Case = row(self.grids[int(self.grid[index])].case, int(self.row[index]))
        return one

    def __len__(self) -> int:
        return len(self.grid)


PROJECTIONS = ("MHA", "GQA", "MQA", "MLA")


def only(table: Table, projections: Sequence[str]) -> Table:
    """The table with every other projection marked as inadmissible and last."""
    wanted = np.isin(table.projection, [PROJECTIONS.index(name) for name in projections])
    if wanted.all():
        return table
    # A candidate of a wanted kind that breaks a rule still comes before one of another kind.
    return replace(table, admissible=table.admissible & wanted, excluded=~wanted)


def shape_of(
    frame: Frame,
    attention: Attention,
    *,
    source_len: int = 0,
    window: int = 0,
    full_every: int = 1,
    feed_forward: FeedForward | None = None,
) -> ModelShape:
    """The whole model around ``attention``, its feed-forward fitted to the frame's budget."""
    ff = feed_forward or fit_feed_forward(frame, attention)
    common: dict[str, Any] = {
        "n_layers": frame.n_layers,
        "feed_forward": ff,
        "vocab_size": frame.vocab_size,
    }
    if frame.arch == "encoder":
        return encoder(attention, **common)
    if frame.arch == "encoder-decoder":
        return encoder_decoder(attention, source_len=source_len, tied=frame.tied, **common)
    return decoder(attention, tied=frame.tied, window=window, full_every=full_every, **common)


def _head_counts(d_model: int, d_head: int, decoupled: bool) -> list[int]:
    """Query heads worth trying: those that fill the width, and others where that is allowed.

    Decoupled counts are what published models do: 16 at least at a width of 1,024, counts that
    are no multiple of 4 rounded up to a multiple of 8, twice the width (mixtures), 1.6 and 0.8
    times (Qwen3, Mistral Nemo).
    """
    exact = d_model / d_head
    counts = {int(exact)} if exact == int(exact) else set()
    if decoupled:
        base = max(exact, 16.0) if d_model >= 1024 else max(exact, 1.0)
        for factor in (1.0, 0.8, 1.6, 2.0):
            scaled = base * factor
            counts |= {int(-(-scaled // 8) * 8)} | ({round(scaled)} if scaled % 4 == 0 else set())
    return sorted(c for c in counts if c >= 1)


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, min(n, _MOST_KV_HEADS) + 1) if n % k == 0]


def _grouped(frame: Frame, widths: Sequence[int], wanted: set[str], decoupled: bool) -> Any:
    rows = [
        (heads, kv, width)
        for width in widths
        for heads in _head_counts(frame.d_model, width, decoupled)
        for kv in _divisors(heads)
        if ("mha" if kv == heads else "mqa" if kv == 1 else "gqa") in wanted
    ]
    if not rows:
        return None
    heads, kv, width = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    norm = wants_qk_norm(frame.params, frame.arch)
    return GroupedQuery(
        d_model=frame.d_model, n_heads=heads, n_kv_heads=kv, d_head=width, qk_norm=norm
    )


def _latent(frame: Frame, widths: Sequence[int], decoupled: bool) -> Any:
    rows = []
    for nope, rope, value, rank in LATENT_SETS:
        if nope not in widths or frame.d_model % nope:
            continue
        counts = {frame.d_model // nope}
        if decoupled:
            power = 1 << max(0, (frame.d_model // 128 - 1).bit_length())
            counts |= {min(power, 128), min(2 * power, 128)}
        query = 1536 if frame.d_model >= _QUERY_RANK_FROM else 0
        rows += [(count, rank, nope, rope, value, query) for count in sorted(counts)]
    if not rows:
        return None
    names = ("n_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
             "q_lora_rank")  # fmt: skip
    columns: list[Any] = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    return Latent(d_model=frame.d_model, **dict(zip(names, columns, strict=True)))


def grid(
    frame: Frame,
    *,
    workload: Workload,
    device: Device | None,
    d_heads: Sequence[int] = (64, 128),
    projections: Sequence[str] = ("mha", "gqa", "mqa", "mla"),
    window: int = 0,
    full_every: int = 1,
) -> tuple[Grid, ...]:
    """Every (d_head, n_heads, n_kv_heads) and every MLA rank set inside ``frame``."""
    wanted, decoupled = set(projections), workload.allow_decoupled
    kinds = [_grouped(frame, d_heads, wanted, decoupled)]
    if "mla" in wanted and frame.arch == "decoder":
        kinds.append(_latent(frame, d_heads, decoupled))
    found = []
    for attention in kinds:
        if attention is None:
            continue
        shape = shape_of(
            frame,
            attention,
            source_len=int(workload.source_len),
            window=window,
            full_every=full_every,
        )
        case = Case(shape=shape, workload=workload, device=device)
        found.append(Grid(case=case, rows=len(attention.n_heads)))
    return tuple(found)


def with_workload(grids: Sequence[Grid], workload: Workload, device: Device | None) -> list[Grid]:
    """The same candidates at another context, batch, split or device."""
    return [replace(g, case=replace(g.case, workload=workload, device=device)) for g in grids]


def tabulate(grids: Sequence[Grid], *, without: Sequence[str] = ("memory",)) -> Table:
    """All costs of all candidates. Fitting in memory is a column, not a mask, unless asked."""
    fixed = _joined([_of_geometry(g, index, without) for index, g in enumerate(grids)])
    return with_room(Table(grids=tuple(grids), **fixed, **_of_work_joined(grids, True)))


def revisit(table: Table, workload: Workload, device: Device | None) -> Table:
    """The same candidates at another context, batch, split or device.

    Predicted times are worked out again only where the priority looks at them, masks only where
    the tensor parallelism changed: no other masking rule depends on the work.
    """
    grids = with_workload(table.grids, workload, device)
    timed = workload.priority == "latency"
    changes: dict[str, Any] = _of_work_joined(grids, timed)
    before = table.grids[0].case.workload.tensor_parallel
    if workload.tensor_parallel != before:
        masks = [_admissible(g, ("memory",)) for g in grids]
        changes["admissible"] = np.concatenate(masks) & ~np.asarray(table.excluded)
    return with_room(replace(table, grids=tuple(grids), **changes))


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_work_joined(grids: Sequence[Grid], timed: bool) -> dict[str, np.ndarray]:
    return _joined([_of_work(g, timed) for g in grids])


def with_room(table: Table) -> Table:
    """The table with every candidate given the room that the heaviest one leaves."""

    def least(room: np.ndarray) -> np.ndarray:
        usable = room[table.admissible]
        return np.full(len(table), usable.min() if usable.size else np.inf)

    return replace(
        table,
        room_bytes=least(table.room_bytes),
        light_room_bytes=least(table.light_room_bytes),
    )


def _admissible(g: Grid, without: Sequence[str]) -> np.ndarray:
    feed_forward = g.case.shape.feed_forward
    room = feed_forward.d_ff > 0 if feed_forward is not None else True
    return np.broadcast_to(admissible(g.case, without=without) & room, (g.rows,))


def _of_geometry(g: Grid, index: int, without: Sequence[str]) -> dict[str, np.ndarray]:
    """The columns that do not depend on the work."""
    attention: Any = g.case.attention
    latent = isinstance(attention, Latent)
    heads, kv = attention.n_heads, attention.kv_heads
    loss = penalty(attention)
    columns: dict[str, Any] = {
        "grid": index,
        "row": np.arange(g.rows),
        "projection": 3 if latent else np.where(kv == heads, 0, np.where(kv == 1, 2, 1)),
        "d_head": attention.qk_nope_head_dim if latent else attention.d_head,
        "n_heads": heads,
        "n_kv_heads": kv,
        "kv_lora_rank": attention.kv_lora_rank if latent else 0,
        "penalty_nats": loss.nats,
        "expected_nats": loss.expected,
        "admissible": _admissible(g, without),
    }
    return {name: np.broadcast_to(np.asarray(v), (g.rows,)) for name, v in columns.items()}


def _of_work(g: Grid, timed: bool) -> dict[str, np.ndarray]:
    """The columns that do: bytes, time and whether it fits."""
    found = work_columns(g.case, timed)
    return {name: np.broadcast_to(np.asarray(v), (g.rows,)) for name, v in found.items()}


def work_columns(case: Case, timed: bool = True) -> dict[str, Any]:
    """Bytes, time and fit of every candidate of a case, each as small as it can be.

    Context and batch may be columns on an axis of their own: results then have both axes.
    """
    one = replace_batch(case, 1)
    rank_bytes = cost.cache_bytes_per_rank(one)
    ranks = case.workload.tensor_parallel
    whole = rank_bytes if isinstance(ranks, int) and ranks == 1 else cost.cache_bytes(one)
    device_bytes = rank_bytes * cost.sequences_per_replica(case)
    found: dict[str, Any] = {
        "cache_bytes": whole * case.workload.batch,
        "device_bytes": device_bytes,
        "room_bytes": np.inf,
        "light_room_bytes": np.inf,
        "decode_s": np.nan,
        "fits": True,
    }
    if case.device is None:
        return found
    params = cost.split_params(case.shape)
    room = cost.room_per_device(case, params)
    light = replace(case, workload=replace(case.workload, weight_dtype=_lighter(case.workload)))
    found["room_bytes"] = maximum(room, 0)
    found["light_room_bytes"] = maximum(cost.room_per_device(light, params), 0)
    found["fits"] = device_bytes <= room
    if timed and case.shape.arch != "encoder":
        found["decode_s"] = decode_seconds(case)
    return found


def _lighter(workload: Workload) -> str:
    """Weights in 8 bits, or as they are where that is no more."""
    return "int8" if dtype(workload.weight_dtype).bytes_per_element > 1 else workload.weight_dtype


def replace_batch(case: Case, batch: int) -> Case:
    """The case with another batch."""
    return replace(case, workload=replace(case.workload, batch=batch))


def row(value: Any, index: int) -> Any:
    """One row of a case (or of anything it holds), every column replaced by a plain number."""
    if isinstance(value, np.ndarray):
        return value[index].item()
    if isinstance(value, tuple):
        return tuple(row(v, index) for v in value)
    if isinstance(value, Case | ModelShape | GroupedQuery | Latent | FeedForward | Workload):
        return replace(value, **{f.name: row(getattr(value, f.name), index) for f in fields(value)})
    if hasattr(value, "scope") and hasattr(value, "attention"):  # a group of layers
        return replace(value, **{f.name: row(getattr(value, f.name), index) for f in fields(value)})
    if hasattr(value, "size") and hasattr(value, "grows"):  # a scope
        return replace(value, size=row(value.size, index))
    return value
