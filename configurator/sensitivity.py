"""What would change the answer: where projection or heads flip, and how far that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from configurator.budget import Frame
from configurator.core.case import Device, Workload
from configurator.core.report import Sensitivity
from configurator.core.units import format_bytes
from configurator.rank import decide, principles
from configurator.search import PROJECTIONS, Table, only, revisit

__all__ = ["sensitivity"]

_REACH = 6  # doublings looked at in each direction
Choice = tuple[str, int, int, str]


def choice(
    table: Table,
    frame: Frame,
    workload: Workload,
    device: Device | None,
    projections: Sequence[str],
) -> Choice:
    """Projection, KV heads, head width and what it takes to fit, at one workload.

    Candidates of every kind bound the room, as for the answer itself; ``projections`` may win.
    """
    there = only(revisit(table, workload, device), projections)
    best = decide(there, principles(frame, workload, device))
    kind = PROJECTIONS[int(there.projection[best])]
    if there.fits[best]:
        needs = ""
    elif there.device_bytes[best] <= there.light_room_bytes[best]:
        needs = ", with weights in 8 bits"
    else:
        return "nothing fits", 0, 0, ""
    return kind, int(there.n_kv_heads[best]), int(there.d_head[best]), needs


def sensitivity(
    table: Table,
    frame: Frame,
    workload: Workload,
    device: Device | None,
    projections: Sequence[str] = PROJECTIONS,
) -> tuple[Sensitivity, ...]:
    """The nearest flips in context, batch, memory and tensor parallelism.

    Each input is doubled or halved up to six times, then the flip is found by bisection to 1 %
    (a whole number of sequences for the batch). Between two points that give the same answer it
    is taken as the same: a flip there and back within a factor of two would be missed.
    """

    def ask(changed: Workload, target: Device | None) -> Choice:
        return choice(table, frame, changed, target, projections)

    here = ask(workload, device)
    found: list[Sensitivity] = []

    def at_context(tokens: int) -> Choice:
        return ask(replace(workload, context=tokens), device)

    def at_batch(batch: int) -> Choice:
        return ask(replace(workload, batch=batch), device)

    found += _both_ways("context", int(workload.context), 128, 1 << 30, here, at_context)
    found += _both_ways("batch", int(workload.batch), 1, 1 << 16, here, at_batch)
    if device is None:
        return tuple(found)
    known = device

    def at_memory(size: int) -> Choice:
        return ask(workload, replace(known, memory_bytes=size))

    def at_ranks(ranks: int) -> Choice:
        return ask(replace(workload, tensor_parallel=ranks), known)

    found += _both_ways("memory", known.memory_bytes, 1 << 28, 1 << 43, here, at_memory)
    if known.count > 1:
        found.append(_ranks(int(workload.tensor_parallel), known.count, here, at_ranks))
    return tuple(found)


def _both_ways(
    name: str, asked: int, least: int, most: int, here: Choice, at: Callable[[int], Choice]
) -> list[Sensitivity]:
    rows = []
    for direction in ("up", "down"):
        if direction == "down" and asked <= least:
            continue
        flip = _first_flip(asked, direction, least, most, here, at)
        reach = asked * 2**_REACH if direction == "up" else max(asked >> _REACH, least)
        rows.append(_said(name, asked, direction, flip, here, min(reach, most)))
    return rows


def _first_flip(
    asked: int, direction: str, least: int, most: int, here: Choice, at: Callable[[int], Choice]
) -> tuple[int, Choice] | None:
    same, other, there = asked, asked, here
    for _ in range(_REACH):
        other = same * 2 if direction == "up" else same // 2
        if not least <= other <= most:
            return None
        there = at(other)
        if there != here:
            break
        same = other
    else:
        return None
    while abs(other - same) > max(1, same // 100):
        middle = (same + other) // 2
        tried = at(middle)
        if tried == here:
            same = middle
        else:
            other, there = middle, tried
    return other, there


def _words(choice: Choice, here: Choice) -> str:
    """The answer there; its head width only where that is another one than here."""
    kind, kv, width, needs = choice
    name = f"{kind} with {kv} KV heads" if kind == "GQA" else kind
    if width and here[2] and width != here[2]:
        name += f" of {width}" if kind == "GQA" else f" with heads of {width}"
    return f"{name}{needs}"


def _said(
    name: str,
    asked: int,
    direction: str,
    flip: tuple[int, Choice] | None,
    here: Choice,
    reach: int,
) -> Sensitivity:
    show = format_bytes if name == "memory" else "{:,}".format
    if flip is None:
        return Sensitivity(
            input=name,
            asked=asked,
            direction=direction,
            flips_at=None,
            factor=None,
            to="",
            message=f"{name} {direction} to {show(reach)}: the answer stays",
        )
    value, there = flip
    factor, to = value / asked, _words(there, here)
    return Sensitivity(
        input=name,
        asked=asked,
        direction=direction,
        flips_at=value,
        factor=factor,
        to=to,
        message=f"{name} from {show(asked)} to {show(value)} ({factor:.3g}x): {to}",
    )


def _ranks(asked: int, devices: int, here: Choice, at: Callable[[int], Choice]) -> Sensitivity:
    """The nearest other tensor parallelism that changes the answer, on the same devices."""
    options = [r for r in (2**i for i in range(11)) if r <= devices and r != asked]
    options.sort(key=lambda r: max(r / asked, asked / r))
    for ranks in options:
        there = at(ranks)
        if there != here:
            way = "up" if ranks > asked else "down"
            return _said("tensor_parallel", asked, way, (ranks, there), here, devices)
    return Sensitivity(
        input="tensor_parallel",
        asked=asked,
        direction="both",
        flips_at=None,
        factor=None,
        to="",
        message=f"any tensor parallelism up to {devices}: the answer stays",
    )
