"""Vision and audio towers beside a text model, and the projectors between; found by walking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from configurator.interop.huggingface.config import Config

__all__ = ["Tower", "outer_types", "towers_of"]

_KEYS = {
    "vision_config": "vision", "vision_tower_config": "vision", "visual": "vision",
    "vit_config": "vision", "audio_config": "audio", "audio_encoder_config": "audio",
    "encoder_config": "encoder", "speech_config": "audio",
}  # fmt: skip
_BESIDE_A_DECODER = {"encoder": "encoder", "text_encoder": "text", "audio_encoder": "audio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """One tower: its kind (vision, audio), its attention heads, its weights with projector.

    ``params`` is ``None`` where this kind of tower cannot be counted; ``note`` then says so.
    """

    kind: str
    heads: int = 0
    params: int | None = None
    note: str = ""


@cache
def outer_types() -> dict[str, Callable[[Config, Config], tuple[Tower, ...]]]:
    """Builders of towers by outer model type; each module here may hold a table ``OUTER``."""
    found: dict[str, Callable[[Config, Config], tuple[Tower, ...]]] = {}
    for info in iter_modules(__path__):
        found |= getattr(import_module(f"{__name__}.{info.name}"), "OUTER", {})
    return found


def towers_of(top: Config, text: Config) -> tuple[Tower, ...]:
    """The towers of a file, counted where its outer type is known, else named as not counted."""
    builder = outer_types().get(top.model_type)
    if builder is not None:
        return builder(top, text)
    found = []
    keys = _KEYS | (_BESIDE_A_DECODER if text.path.startswith("decoder") else {})
    for key, kind in keys.items():
        if isinstance(top.values.get(key), dict):
            inner = top.section(key)
            heads = inner.maybe("num_attention_heads") if inner is not None else None
            note = f"the {kind} tower of {top.model_type or 'this model'} is not counted"
            found.append(Tower(kind=kind, heads=heads or 0, note=note))
    return tuple(found)
