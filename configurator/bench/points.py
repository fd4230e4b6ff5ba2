"""What is measured: one geometry at one context and batch, as plain values that travel.

A point is an item of :func:`configurator.runner.run_map`: it can be written to a rows file,
resumed, sharded and sent to another machine. :func:`plan` puts the most telling ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from configurator.core.dtypes import cache_type
from configurator.core.kinds import Attention, kinds

__all__ = ["Point", "attention_from", "attention_to", "name_of", "plan"]


def attention_to(attention: Attention) -> dict[str, Any]:
    """A geometry as plain values: its kind and the fields that differ from their defaults."""
    names = {cls: name for name, cls in kinds().items()}
    plain: dict[str, Any] = {"kind": names[type(attention)]}
    for f in fields(attention):  # type: ignore[arg-type]
        value = getattr(attention, f.name)
        if f.default is MISSING or value != f.default:
            plain[f.name] = value if isinstance(value, str | bool) else int(value)
    return plain


def attention_from(plain: dict[str, Any]) -> Attention:
    """The geometry that :func:`attention_to` wrote."""
    values = {k: v for k, v in plain.items() if k != "kind"}
    return kinds()[plain["kind"]](**values)  # type: ignore[no-any-return]


def name_of(attention: Attention) -> str:
    """A geometry in few characters: ``GQA 32x128 kv8`` or ``MLA 32h r512+64``.

    >>> from configurator.core.shapes import geometry
    >>> name_of(geometry(d_model=4096, n_heads=32, n_kv_heads=8))
    'GQA 32x128 kv8'
    """
    rank = getattr(attention, "kv_lora_rank", 0)
    if rank and not getattr(attention, "rebuilt", False):
        rope = getattr(attention, "qk_rope_head_dim", 0)
        return f"MLA {attention.n_heads}h r{rank}+{rope}"
    width, values = getattr(attention, "d_head", 0), getattr(attention, "v_width", 0)
    shape = f"{attention.n_heads}x{width}" + (f"/{values}" if values != width else "")
    heads = "" if attention.kv_heads == attention.n_heads else f" kv{attention.kv_heads}"
    return f"{attention.projection} {shape}{heads}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One attention to time. ``window`` tokens are cached where it is below the context.

    ``formulations`` names those to time; empty means all that do not compile, ``compiled`` the
    others. ``device`` is torch's name, or ``best`` for whatever the machine that measures has;
    ``limit_s`` is spent on each formulation at most, about.
    """

    attention: dict[str, Any]
    phase: str = "decode"
    batch: int = 1
    context: int = 8192
    window: int = 0
    kv_dtype: str = "bf16"
    device: str = "cpu"
    formulations: tuple[str, ...] = ()
    compiled: bool = False
    limit_s: float = 0.8

    @property
    def tokens(self) -> int:
        """Tokens in the cache."""
        return min(self.context, self.window) if self.window else self.context

    @property
    def cache_bytes(self) -> int:
        """What the core predicts for this one layer's cache."""
        attention = attention_from(self.attention)
        per_token = attention.cache_bytes(cache_type(self.kv_dtype))
        return int(self.batch * self.tokens * per_token)

    @property
    def case(self) -> str:
        """The point in words; with :attr:`phase` it is what rows are matched by."""
        name = name_of(attention_from(self.attention))
        window = f", window {self.window:,}" if self.window else ""
        return f"{name}, context {self.context:,}{window}, batch {self.batch}, {self.kv_dtype}"

    def item(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"formulations": list(self.formulations)}

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> Point:
        """The point that :meth:`item` wrote."""
        return cls(**{**item, "formulations": tuple(item["formulations"])})


def plan(points: Sequence[Point]) -> list[Point]:
    """Points in the order in which each adds most, so that a budget cuts off the least telling.

    The largest context comes first, with what was asked about before its alternatives, so that
    the comparison exists; then the smallest, then what lies between, the widest gap first.
    Decode comes before prefill, and compiled formulations last: they take a minute each.
    """
    return [points[i] for i in sorted(range(len(points)), key=_telling(points))]


def _telling(points: Sequence[Point]) -> Callable[[int], tuple[Any, ...]]:
    """Sort key: compiled last, then by how early the point's context and batch come."""
    sizes = sorted({(p.context, p.batch) for p in points})
    rank = {size: n for n, size in enumerate(spread(len(sizes)))}
    place = {size: rank[n] for n, size in enumerate(sizes)}

    def key(i: int) -> tuple[Any, ...]:
        point = points[i]
        size = place[point.context, point.batch]
        return point.compiled, size, point.phase != "decode", i

    return key


def spread(count: int) -> list[int]:
    """``0 .. count - 1``: the last, the first, then again and again the middle of a widest gap.

    >>> spread(5)
    [4, 0, 2, 1, 3]
    """
    if count <= 0:
        return []
    taken = [count - 1] if count == 1 else [count - 1, 0]
    while len(taken) < count:
        ordered = sorted(taken)
        gaps = [(b - a, -a) for a, b in pairwise(ordered)]
        width, start = max(gaps)
        taken.append(-start + width // 2)
    return taken
