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


def answer(table: Sequence[dict[str, Any]]) -> str:
    """Where the cache is small enough, where the loss is, and whether the two meet."""
    top, near = _under(table), _within(table, BOUNDS_BITS[0])
    limit = largest_rank_under(SHARE)
    cache = f"The cache is under 1/8 of MHA's up to rank {limit} ({limit} + {D_ROPE} rotary values)"
    if near is None:
        return f"{cache}; no rank tried stays within {BOUNDS_BITS[0]:g} bit of MHA."
    text = f"{cache}; the loss is within {BOUNDS_BITS[0]:g} bit of MHA from rank "
    text += f"{near['kv_lora_rank']} on"
    if top is None or near["kv_lora_rank"] > top["kv_lora_rank"]:
        return f"{text}: the two do not meet."
    over = top["bits_over_mha"]["mean"]
    return (
        f"{text}, so the two meet: at rank {top['kv_lora_rank']} MLA holds "
        f"{top['cache_share']:.1%} of MHA's cache at {over:+.3f} bits per byte."
    )


def findings(table: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """MHA's own loss, each bound with its smallest rank, and what the rotary key weighs."""
    top, mha = _under(table), table[0]
    found = [
        f"MHA reaches {mha['bits_per_byte']['mean']:.3f} bits per byte on held-out text and caches "
        f"{mha['cache_elements']} values per token and layer; the bound of {BOUNDS_BITS[0]:g} bit "
        f"is {BOUNDS_BITS[0] / mha['bits_per_byte']['mean']:.0%} of that loss, so the two tighter "
        "ones say more"
    ]
    for bound in BOUNDS_BITS:
        near = _within(table, bound)
        if near is None:
            nearest = min(table[1:], key=lambda r: r["bits_over_mha"]["mean"])
            found.append(
                f"within {bound:g} bit of MHA: no rank tried; the nearest is rank "
                f"{nearest['kv_lora_rank']} ({nearest['bits_over_mha']['mean']:+.3f} bits, cache "
                f"{nearest['cache_share']:.1%})"
            )
            continue
        meets = top is not None and near["kv_lora_rank"] <= top["kv_lora_rank"]
        found.append(
            f"within {bound:g} bit of MHA: from rank {near['kv_lora_rank']} on "
            f"({near['bits_over_mha']['mean']:+.3f} bits, cache {near['cache_share']:.1%} of "
            f"MHA's); {'meets' if meets else 'does not meet'} the eighth"
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
