"""A laptop-sized version of a geometry: its projection and head sharing kept, its widths cut.

What the test hook trains is not the recommended model but the smallest one that still has its
kind of attention. Every cut is said in words, so that nobody takes one for the other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent

__all__ = ["Geometry", "Shrunk", "attention_of", "describe", "shrink"]

Geometry = GroupedQuery | Latent

_D_HEAD = 16
_SMALL = 128
_MOST_QUERY_HEADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The attention that is trained, and the sentence that says what was cut."""

    attention: Geometry
    said: str
    cut: bool


def attention_of(source: object) -> Geometry:
    """The attention of a geometry, a recommendation, or a report that holds one.

    Raises ``UsageError`` for anything else.
    """
    if isinstance(source, GroupedQuery | Latent):
        return source
    chosen: Any = getattr(source, "recommendation", source)
    try:
        if chosen.projection == "MLA":
            names = [f.name for f in fields(Latent) if hasattr(chosen, f.name)]
            return Latent(**{name: getattr(chosen, name) for name in names})
        return GroupedQuery(
            d_model=chosen.d_model,
            n_heads=chosen.n_heads,
            n_kv_heads=chosen.n_kv_heads,
            d_head=chosen.d_head,
            v_head_dim=chosen.v_head_dim,
        )
    except AttributeError:
        raise UsageError(
            f"a {type(source).__name__} has no attention to train: give a report of recommend(), "
            "a GroupedQuery or a Latent"
        ) from None


def describe(attention: Geometry) -> str:
    """One geometry in a few words: ``GQA, 8 query and 2 KV heads of 16, width 128``."""
    width = f"width {attention.d_model}"
    if isinstance(attention, Latent):
        query = f", query rank {attention.q_lora_rank}" if attention.q_lora_rank else ""
        return (
            f"MLA, {attention.n_heads} heads of {attention.qk_nope_head_dim}+"
            f"{attention.qk_rope_head_dim}, rank {attention.kv_lora_rank}{query}, {width}"
        )
    heads = f"{attention.n_heads} query and {attention.n_kv_heads} KV heads of {attention.d_head}"
    return f"{attention.projection}, {heads}, {width}"


def shrink(attention: Geometry) -> Shrunk:
    """The geometry with heads of 16 and a width of at most 128, and what was cut.

    Kept: the projection, the number of query heads per KV head (up to 16; for MQA up to 8), the
    ratio of value to key width, QK-norm and biases; for MLA the rank, rotary and value widths in
    units of the head width (DeepSeek-V2: rank 4, rotary 1/2). Not kept: the number of heads and
    what follows from it.
    """
    _refuse_broken(attention)
    if attention.d_model <= _SMALL:
        return Shrunk(
            attention=attention, said=f"{describe(attention)}: small already, not cut", cut=False
        )
    small, lost = (
        _shrink_latent(attention) if isinstance(attention, Latent) else _shrink_heads(attention)
    )
    said = f"{describe(attention)} shrunk to {describe(small)}"
    return Shrunk(attention=small, said=said + (f"; {lost}" if lost else ""), cut=True)


def _shrink_heads(attention: GroupedQuery) -> tuple[GroupedQuery, str]:
    ratio = attention.n_heads // attention.n_kv_heads
    lost = ""
    if attention.projection == "MHA":
        n_heads, n_kv_heads = min(4, attention.n_heads), min(4, attention.n_heads)
    elif attention.projection == "MQA":
        n_heads, n_kv_heads = min(8, attention.n_heads), 1
        if n_heads < ratio:
            lost = f"its {ratio} query heads per KV head are {n_heads} here"
    else:
        kept = min(ratio, _MOST_QUERY_HEADS)
        n_heads, n_kv_heads = 2 * kept, 2
        if kept < ratio:
            lost = f"its {ratio} query heads per KV head are {kept} here"
    d_head = min(_D_HEAD, attention.d_head)
    v_head_dim = attention.v_head_dim and max(1, attention.v_head_dim * d_head // attention.d_head)
    small = replace(
        attention,
        # Narrower heads or a wider residual stream both took longer to learn.
        d_model=min(_SMALL, n_heads * d_head),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        v_head_dim=v_head_dim,
        d_source=0,
    )
    return small, lost


def _shrink_latent(attention: Latent) -> tuple[Latent, str]:
    n_heads = min(8, attention.n_heads)
    nope = min(_D_HEAD, attention.qk_nope_head_dim)
    d_model = n_heads * nope

    def scaled(width: int, *, even: bool = False) -> int:
        value = max(1, round(width * nope / attention.qk_nope_head_dim)) if width else 0
        return value + value % 2 if even else value

    small = replace(
        attention,
        d_model=d_model,
        n_heads=n_heads,
        kv_lora_rank=scaled(attention.kv_lora_rank),
        q_lora_rank=attention.q_lora_rank
        and max(1, round(attention.q_lora_rank * d_model / attention.d_model)),
        qk_nope_head_dim=nope,
        qk_rope_head_dim=scaled(attention.qk_rope_head_dim, even=True),
        v_head_dim=scaled(attention.v_head_dim),
        index_head_dim=0,
        index_n_heads=0,
        rebuilt=False,
    )
    lost = "the sparse-attention indexer is left out" if attention.index_head_dim else ""
    return small, lost


def _refuse_broken(attention: Geometry) -> None:
    """Shrinking divides; a geometry that cannot be built is refused with what is wrong."""
    for field in fields(attention):
        value = getattr(attention, field.name)
        optional = field.default == 0 or isinstance(value, bool | str)
        if not optional and value < 1:
            raise UsageError(f"{field.name} is {value}; it must be at least 1")
    if isinstance(attention, GroupedQuery) and attention.n_heads % attention.n_kv_heads:
        raise UsageError(
            f"n_heads {attention.n_heads} is not a multiple of n_kv_heads "
            f"{attention.n_kv_heads}; choose n_kv_heads among its divisors"
        )
