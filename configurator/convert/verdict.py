"""Whether a conversion is worth it: what is needed, and the mildest change that gives it."""

from __future__ import annotations

from configurator.assemble import label
from configurator.convert.change import Change
from configurator.core import cost
from configurator.core.case import Case
from configurator.core.kinds.mla import Latent
from configurator.core.report import Option
from configurator.core.units import format_bytes

__all__ = ["judged"]

_GAIN = 1.10  # a decode step closer than this is inside the prediction's error
_BEYOND_A_CACHE_TYPE = 1.5  # what training must gain over an 8-bit cache, which needs none
_SEQUENCES = 8  # a fair serving goal: published models leave room for 6 to 59 at full context


def judged(
    case: Case, now: Option, lighter: Option | None, changes: list[Change]
) -> tuple[str, str, Change | None]:
    """The verdict, its reason in numbers, and the mildest change that does what is needed."""
    if not changes:
        return "nothing to convert", _nothing(case), None
    mildest = changes[0]
    if case.device is None:
        return (
            "depends",
            f"no target was named: {mildest.name} would keep {mildest.cache_share:.0%} of the "
            f"cache ({format_bytes(mildest.option.cache.bytes_total)} of "
            f"{format_bytes(now.cache.bytes_total)}); name --target to learn whether that decides "
            "anything",
            mildest,
        )
    if now.cache.fits is False:
        return _where_it_does_not_fit(lighter, changes)
    return _where_it_fits(now, lighter, changes)


def _nothing(case: Case) -> str:
    a = case.attention
    if not cost.cache_bytes(case):
        return "it keeps no cache that grows, so fewer KV heads would save nothing"
    if isinstance(a, Latent):
        return "it keeps a latent already; a smaller rank was never published as a conversion"
    return f"{label(case)} has one KV head, or a number that no smaller power of two divides"


def _where_it_does_not_fit(
    lighter: Option | None, changes: list[Change]
) -> tuple[str, str, Change | None]:
    fitting = [c for c in changes if c.option.cache.fits]
    if lighter is not None and lighter.cache.fits:
        chosen = fitting[0] if fitting else changes[0]
        return (
            "smaller cache type first",
            "it does not fit as it is; an fp8 cache "
            f"({format_bytes(lighter.cache.bytes_total)}) fits and needs no training",
            chosen,
        )
    if fitting:
        best = fitting[0]
        return (
            "worth it",
            f"it does not fit as it is, nor with an fp8 cache; {best.name} keeps "
            f"{best.cache_share:.0%} of the cache and fits",
            best,
        )
    return (
        "not enough",
        "it does not fit as it is, and no conversion makes it fit: shorten the context, split it "
        "over more devices, or store weights in a smaller type",
        None,
    )


def _where_it_fits(
    now: Option, lighter: Option | None, changes: list[Change]
) -> tuple[str, str, Change | None]:
    room = now.cache.max_batch or 0
    faster = [c for c in changes if c.speedup is not None and c.speedup >= _GAIN]
    roomier = [c for c in changes if room < _SEQUENCES <= (c.option.cache.max_batch or 0)]
    wanted = [c for c in changes if c in faster or c in roomier]
    if not wanted:
        most = max((c.speedup or 1.0 for c in changes), default=1.0)
        return (
            "not worth it",
            f"it fits with room for {room:,} sequences, and no conversion makes a decode step "
            f"more than {most:.2f}x as fast, inside the error of a pair of predictions",
            None,
        )
    best = wanted[0]
    gains = _gains(best, room)
    if now.recommendation.projection != "MHA":
        return (
            "not worth it",
            f"{best.name} would mean {gains}, but the model shares its KV heads already and no "
            "conversion from there to fewer was published; a smaller cache type needs no training",
            None,
        )
    if lighter is not None and _enough(lighter, now, best):
        return (
            "smaller cache type first",
            f"an fp8 cache leaves room for {lighter.cache.max_batch or 0:,} sequences instead of "
            f"{room:,} and needs no training; {best.name} would mean {gains}",
            best,
        )
    return (
        "worth it",
        f"{best.name} keeps {best.cache_share:.0%} of the cache: {gains}; weigh that against the "
        "published losses",
        best,
    )


def _enough(lighter: Option, now: Option, change: Change) -> bool:
    """Whether 8 bits of cache give room for eight sequences and most of the conversion's speed."""
    room = (lighter.cache.max_batch or 0) >= min(_SEQUENCES, change.option.cache.max_batch or 0)
    before, after = now.latency.decode_s, lighter.latency.decode_s
    speed = before / after if before and after else 1.0
    return room and (change.speedup or 1.0) < _BEYOND_A_CACHE_TYPE * speed


def _gains(change: Change, room: int) -> str:
    found = []
    if change.speedup is not None and change.speedup >= _GAIN:
        found.append(f"a decode step {change.speedup:.2f}x as fast")
    after = change.option.cache.max_batch or 0
    if after > room:
        found.append(f"room for {after:,} sequences instead of {room:,}")
    return " and ".join(found)
