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
from configurator.core.shapes import check_groups

__all__ = ["Geometry", "Shrunk", "as_it_is", "attention_of", "describe", "shrink"]

Geometry = GroupedQuery | Latent

_D_HEAD = 16
_SMALL = 128
_LEAST = 64
_MOST_QUERY_HEADS = 16
_MOST_VALUE = 4
_LEAST_VALUE, _LEAST_RANK, _LEAST_ROTARY = 8, 16, 8
"""Below these a geometry that passes at full width stayed on a plateau for 600 steps."""
_NOT_BUILT = {
    "index_head_dim": "the sparse-attention indexer is",
    "index_n_heads": "",
    "rebuilt": "",
    "d_source": "",
    "own_kv": "the cache it shares with other layers is",
    "gate_params": "its gates are",
    "other_params": "its sinks and further norms are",
}
"""Fields that training leaves at their default, and the words for what that leaves out."""


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
        nope, value = attention.qk_nope_head_dim, attention.v_head_dim
        heads = f"{attention.n_heads} heads of {nope}+{attention.qk_rope_head_dim}"
        ranks = f", rank {attention.kv_lora_rank}"
        ranks += f", query rank {attention.q_lora_rank}" if attention.q_lora_rank else ""
    else:
        nope, value = attention.d_head, attention.v_width
        heads = f"{attention.n_heads} query and {attention.n_kv_heads} KV heads of {nope}"
        ranks = ", QK-norm" if attention.qk_norm else ""
    heads += f" (values {value})" if value != nope else ""
    return f"{attention.projection}, {heads}{ranks}, {width}"


def as_it_is(attention: Geometry) -> Shrunk:
    """The geometry at full width; raises ``UsageError`` where it cannot be built."""
    _refuse_broken(attention)
    plain, lost = _buildable(attention)
    said = "; ".join((f"{describe(plain)}: full width", *lost))
    return _even(Shrunk(attention=plain, said=said, cut=False))


def shrink(attention: Geometry) -> Shrunk:
    """The geometry with heads of 16 and a width of 64 to 128, and what was cut.

    Kept: the projection, the number of query heads per KV head (up to 16; for MQA up to 8), the
    ratio of value to key width (up to 4), QK-norm and biases; for MLA the rank, rotary and value
    widths in units of the head width (DeepSeek-V2: rank 4, rotary 1/2). Not kept: the number of
    heads and what follows from it. What would fall below the least that was seen to learn is cut
    less, and ``said`` names it. Raises ``UsageError`` where it cannot be built.
    """
    _refuse_broken(attention)
    plain, lost = _buildable(attention)
    small = plain
    if not _is_small(plain):
        small, more = _shrink_latent(plain) if isinstance(plain, Latent) else _shrink_heads(plain)
        lost += more
    if small == plain:
        said = f"{describe(plain)}: small already, not cut"
    else:
        said = f"{describe(plain)} shrunk to {describe(small)}"
    return _even(Shrunk(attention=small, said="; ".join((said, *lost)), cut=small != plain))


def _is_small(attention: Geometry) -> bool:
    if isinstance(attention, Latent):
        head = attention.qk_nope_head_dim
        sizes = [attention.kv_lora_rank, attention.q_lora_rank, 2 * attention.qk_rope_head_dim]
    else:
        head, sizes = attention.d_head, []
    widest = max(head, attention.v_width // _MOST_VALUE)
    return all(n <= _SMALL for n in (attention.d_model, attention.n_heads * widest, *sizes))


def _shrink_heads(attention: GroupedQuery) -> tuple[GroupedQuery, tuple[str, ...]]:
    ratio = attention.group
    if attention.projection == "MHA":
        n_heads = n_kv_heads = min(4, attention.n_heads)
    elif attention.projection == "MQA":
        n_heads, n_kv_heads = min(8, attention.n_heads), 1
    else:
        n_kv_heads = 2
        n_heads = n_kv_heads * min(ratio, _MOST_QUERY_HEADS)
    kept = n_heads // n_kv_heads
    lost = [f"its {ratio} query heads per KV head are {kept} here"] if kept < ratio else []
    d_head, d_model, said = _widths(attention.d_head, attention.d_model, n_heads)
    share = d_head / attention.d_head
    small = replace(
        attention,
        d_model=d_model,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        v_head_dim=attention.v_head_dim and _value_width(attention.v_head_dim, share, d_head, lost),
    )
    return small, (*lost, *said)


def _shrink_latent(attention: Latent) -> tuple[Latent, tuple[str, ...]]:
    n_heads = min(8, attention.n_heads)
    nope, d_model, said = _widths(attention.qk_nope_head_dim, attention.d_model, n_heads)
    share, lost = nope / attention.qk_nope_head_dim, list[str]()
    # One head of 64 with a rank of 16, or a rotary width of 8, stayed on a plateau of recall.
    rank, turned = max(_LEAST_RANK, nope // 2), max(_LEAST_ROTARY, nope // 4)
    rotary = _scaled("rotary width", attention.qk_rope_head_dim, share, turned, _SMALL // 2, lost)
    query_rank, narrowed = attention.q_lora_rank, d_model / attention.d_model
    if query_rank:
        query_rank = _scaled("query rank", query_rank, narrowed, _LEAST_RANK, _SMALL, lost)
    small = replace(
        attention,
        d_model=d_model,
        n_heads=n_heads,
        kv_lora_rank=_scaled("rank", attention.kv_lora_rank, share, rank, _SMALL, lost),
        q_lora_rank=query_rank,
        qk_nope_head_dim=nope,
        qk_rope_head_dim=min(attention.qk_rope_head_dim, rotary + rotary % 2),
        v_head_dim=_value_width(attention.v_head_dim, share, nope, lost),
    )
    return small, (*lost, *said)


def _widths(d_head: int, d_model: int, n_heads: int) -> tuple[int, int, list[str]]:
    """Width of a head and of the residual stream, and what was kept from being cut further.

    Heads of 16, or as wide as makes 64 of all together: with one head of 16, recall stayed at
    one in five for 600 steps.
    """
    head = min(d_head, max(_D_HEAD, _LEAST // n_heads))
    head -= head % 2 if head < d_head else 0
    said = [f"its heads are {head} wide, not {_D_HEAD}"] if head > min(_D_HEAD, d_head) else []
    # A residual stream wider than the heads together took longer to learn.
    width = min(d_model, _SMALL, max(_LEAST, n_heads * head))
    if width > n_heads * head:
        said.append(f"its width is {width}, not that of its heads together")
    return head, width, said


def _value_width(width: int, share: float, d_head: int, lost: list[str]) -> int:
    return _scaled("value width", width, share, _LEAST_VALUE, _MOST_VALUE * d_head, lost)


def _scaled(name: str, width: int, share: float, least: int, most: int, lost: list[str]) -> int:
    """``share`` of ``width``, but not below ``least`` nor above ``most``; ``lost`` is told so."""
    meant = max(1, round(width * share))
    value = min(width, most, max(least, meant))
    if value != meant:
        lost.append(f"its {name} is {value}, not the {meant} of its ratio")
    return value


def _buildable(attention: Geometry) -> tuple[Geometry, tuple[str, ...]]:
    """Without what the modules do not build, and what that is."""
    plain = {f.name: f.default for f in fields(attention) if f.name in _NOT_BUILT}
    gone = (_NOT_BUILT[name] for name in plain if getattr(attention, name) != plain[name])
    said = tuple(f"{name} left out" for name in gone if name)
    changed: dict[str, Any] = plain
    return replace(attention, **changed), said


def _even(shrunk: Shrunk) -> Shrunk:
    """Refuse an odd rotary width: no rotation can be built for it."""
    attention = shrunk.attention
    latent = isinstance(attention, Latent)
    name = "qk_rope_head_dim" if latent else "d_head"
    width = getattr(attention, name)
    if width % 2:
        raise UsageError(
            f"{name.replace('_', '-')} is {width}: rotary embedding turns values in pairs, so it "
            "must be even"
        )
    return shrunk


def _refuse_broken(attention: Geometry) -> None:
    """Shrinking divides; a geometry that cannot be built is refused with what is wrong."""
    for field in fields(attention):
        value = getattr(attention, field.name)
        optional = field.default == 0 or isinstance(value, bool | str)
        if not optional and value < 1:
            raise UsageError(f"{field.name} is {value}; it must be at least 1")
    check_groups(attention)
