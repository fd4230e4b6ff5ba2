"""How long a context a file allows: the positions it states, and what rotary scaling makes of them.

As vLLM derives it: a scaling's factor counts from the original length where one is stated, else
from the stated positions, which Gemma 3 gives already scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from configurator.interop.huggingface.config import Config

__all__ = ["scaled_positions"]

_SCALED_ALREADY = "gemma3"
_MOST = 10**12


def scaled_positions(text: Config, stated: int) -> int:
    """The longest context after rotary scaling, at least the ``stated`` one; 0 where none is."""
    return max([stated, *_scaled(text, stated)]) if stated else 0


def _scaled(text: Config, stated: int) -> Iterator[int]:
    for scaling in _scalings(text.values):
        original = scaling.get("original_max_position_embeddings")
        if original is None and _SCALED_ALREADY in text.model_type:
            continue
        factor = scaling.get("factor")
        length = stated if original is None else original
        if _positive(factor) and _positive(length):
            yield int(factor * length)


def _scalings(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What a file says of its rotary embedding, once, or for each type of layer."""
    for name in ("rope_scaling", "rope_parameters"):
        found = values.get(name)
        if isinstance(found, dict):
            yield found
            yield from (part for part in found.values() if isinstance(part, dict))


def _positive(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= _MOST
