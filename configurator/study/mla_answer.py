"""Which ranks meet both bounds: arithmetic for the cache, the study's own table for the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["BOUNDS_BITS", "SHARE", "answer", "findings", "largest_rank_under"]

N_HEADS, D_HEAD, D_ROPE = 8, 16, 8
SHARE = 1 / 8
BOUNDS_BITS = (1.0, 0.1, 0.02)


def largest_rank_under(share: float, *, n_heads: int = N_HEADS, d_head: int = D_HEAD) -> int:
    """The largest rank whose latent and rotary key take less than ``share`` of MHA's cache.

    >>> largest_rank_under(1 / 8)
    23
    """
    limit = share * 2 * n_heads * d_head - D_ROPE
    rank = int(limit)
    return rank - 1 if rank == limit else rank


def _under(table: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of the largest rank tried whose cache is under an eighth."""
    small = [r for r in table if r["kv_lora_rank"] and r["cache_share"] < SHARE]
    return max(small, key=lambda r: r["kv_lora_rank"], default=None)


def _within(table: Sequence[dict[str, Any]], bound: float) -> dict[str, Any] | None:
    """The smallest rank from which on the mean loss is within ``bound`` bits of MHA's: its row."""
    found = None
    for row in sorted(table[1:], key=lambda r: -r["kv_lora_rank"]):
        if row["bits_over_mha"]["mean"] > bound:
            break
        found = row
    return found


def _from(row: dict[str, Any], table: Sequence[dict[str, Any]]) -> str:
    """``from rank 16 on``; a smallest rank that nothing was tried below says so."""
    rank: int = row["kv_lora_rank"]
    smallest: bool = 1 < rank == min(r["kv_lora_rank"] for r in table[1:])
    return f"from rank {rank} on" + ", the smallest tried" * smallest


def _learned(table: Sequence[dict[str, Any]], pair_bits: float) -> bool:
    return bool(table[0]["bits_per_byte"]["mean"] < pair_bits)


def answer(table: Sequence[dict[str, Any]], pair_bits: float) -> str:
    """Where the cache is small enough, where the loss is, and whether the two meet.

    ``pair_bits`` is what a table of byte pairs scores: a model that is no better has learned
    nothing that attention is for, and its bounds say nothing.
    """
    top, near = _under(table), _within(table, BOUNDS_BITS[0])
    limit = largest_rank_under(SHARE)
    cache = f"The cache is under 1/8 of MHA's up to rank {limit} ({limit} + {D_ROPE} rotary values)"
    if not _learned(table, pair_bits):
        return (
            f"{cache}; of the loss nothing can be said: MHA reaches "
            f"{table[0]['bits_per_byte']['mean']:.3f} bits per byte, no better than a table of "
            f"byte pairs ({pair_bits:.3f}); train longer."
        )
    if near is None:
        return f"{cache}; no rank tried stays within {BOUNDS_BITS[0]:g} bit of MHA."
    text = f"{cache}; the loss is within {BOUNDS_BITS[0]:g} bit of MHA {_from(near, table)}"
    if top is None or near["kv_lora_rank"] > top["kv_lora_rank"]:
        return f"{text}: the two do not meet."
    return (
        f"{text}, so the two meet: at rank {top['kv_lora_rank']} MLA holds "
        f"{top['cache_share']:.1%} of MHA's cache at {_over(top)} per byte."
    )


def findings(table: Sequence[dict[str, Any]], pair_bits: float) -> tuple[str, ...]:
    """MHA's own loss, each bound with its smallest rank, and what the rotary key weighs.

    ``pair_bits`` is what a table of byte pairs scores on the same text.
    """
    top, mha = _under(table), table[0]
    bits = mha["bits_per_byte"]["mean"]
    found = [
        f"MHA reaches {bits:.3f} bits per byte on held-out text and caches "
        f"{mha['cache_elements']} values per token and layer; a table of byte pairs, without any "
        f"attention, scores {pair_bits:.3f}: a bound of {BOUNDS_BITS[0]:g} bit "
        f"({bits + BOUNDS_BITS[0]:.3f}) asks for little, and the two tighter ones say more",
    ]
    if _learned(table, pair_bits):
        found += [_bound(table, bound, top) for bound in BOUNDS_BITS]
        found.append(
            "+- is the 95 % interval of the mean difference from MHA over seeds, pair by pair"
        )
    if top is not None:
        without = top["kv_lora_rank"] / mha["cache_elements"]
        found.append(
            f"the rotary key is {D_ROPE} of {top['cache_elements']} cached values at rank "
            f"{top['kv_lora_rank']}: leaving it out of the count would claim {without:.1%} of "
            f"MHA's cache instead of {top['cache_share']:.1%}, and allow rank "
            f"{largest_rank_under(SHARE) + D_ROPE}"
        )
    return tuple(found)


def _bound(table: Sequence[dict[str, Any]], bound: float, top: dict[str, Any] | None) -> str:
    """The smallest rank within ``bound`` bits, and which ranks the seeds leave open."""
    near = _within(table, bound)
    if near is None:
        nearest = min(table[1:], key=lambda r: r["bits_over_mha"]["mean"])
        inside = nearest["bits_over_mha"]["mean"] <= bound
        none = "not every rank from one on" if inside else "no rank tried"
        text = (
            f"within {bound:g} bit of MHA: {none}; the nearest is rank "
            f"{nearest['kv_lora_rank']} ({_over(nearest)}, cache {nearest['cache_share']:.1%})"
        )
    else:
        meets = top is not None and near["kv_lora_rank"] <= top["kv_lora_rank"]
        text = (
            f"within {bound:g} bit of MHA: {_from(near, table)} ({_over(near)}, cache "
            f"{near['cache_share']:.1%} of MHA's); {'meets' if meets else 'does not meet'} the "
            "eighth"
        )
    unsure = [
        str(r["kv_lora_rank"])
        for r in table[1:]
        if abs(r["bits_over_mha"]["mean"] - bound) <= (r["bits_over_mha_error"] or 0.0)
    ]
    if unsure:
        text += f"; read from means: the seeds do not decide rank {', '.join(unsure)}"
    return text


def _over(row: dict[str, Any]) -> str:
    """``+0.063 +- 0.020 bits``: the mean over seeds and its 95 % interval."""
    error = row["bits_over_mha_error"]
    give = "" if error is None else f" +- {error:.3f}"
    return f"{row['bits_over_mha']['mean']:+.3f}{give} bits"
