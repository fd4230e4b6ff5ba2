"""Where the text model lies in a file: at the top, or one or two levels down beside its towers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from configurator.core.errors import UsageError, show
from configurator.interop.huggingface.config import Config, Notes
from configurator.interop.huggingface.defaults import class_defaults, nested_type, own_names
from configurator.interop.huggingface.family import families
from configurator.interop.huggingface.spellings import SPELLINGS

__all__ = ["SIZES", "text_level", "type_of"]

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads")
_TEXT_KEYS = (
    "text_config", "llm_config", "language_config", "thinker_config", "language_model",
    "lm_config", "decoder", "decoder_config", "text_model_config",
)  # fmt: skip
_DECODERS = ("decoder", "decoder_config")
_SOURCES = ("encoder", "encoder_config", "text_encoder")  # beside a decoder: it attends to them
_NAME = re.compile(r"[\w ./:+-]{1,100}", re.ASCII)
_TASKS = re.compile(r"(For[A-Z].*|LMHeadModel|LMHead.*|Model|WithLMHeadModel)$")


def type_of(values: Mapping[str, Any], path: str = "") -> str:
    """The model type that a level states, or the one its ``architectures`` name; else empty."""
    stated = values.get("model_type")
    if stated is not None and not isinstance(stated, str):
        raise UsageError(f"{path}model_type is {show(stated)}; it must be a string")
    if stated and not _NAME.fullmatch(stated):
        raise UsageError(
            f"{path}model_type {show(stated)} is not a name: letters, digits and - _ . / alone"
        )
    if stated:
        return stated
    names = values.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        stem = _TASKS.sub("", names[0]).replace("_", "").replace("-", "").lower()
        for known in families():
            if known.replace("_", "").replace("-", "") == stem:
                return known
    return ""


def _states_sizes(values: Mapping[str, Any]) -> bool:
    return any(values.get(key) is not None for name in SIZES for key in SPELLINGS[name])


def text_level(values: Mapping[str, Any], notes: Notes) -> tuple[Config, Config]:
    """The level that holds the text model, and the top level.

    Raises ``UsageError`` for a file that states no sizes at all: the defaults of a class are
    not a model.
    """
    top = Config(
        values=own_names(type_of(values), values),
        model_type=type_of(values),
        notes=notes,
        defaults=class_defaults(type_of(values)),
    )
    if _is_pair(top):
        return top, top
    text = _descend(top, 0)
    if text is top and not _states_sizes(values):
        raise UsageError(
            f"the file states no layers, width or heads "
            f"({', '.join(SIZES)} or other names for them); give a model's config.json"
        )
    if not text.model_type and not _states_sizes(text.values):
        where = text.path.rstrip(".")[:80] or "the file"
        raise UsageError(f"{where} states neither a model_type nor any sizes")
    return text, top


def _is_pair(top: Config) -> bool:
    """Whether the file holds an encoder and a decoder that are to be read together."""
    family = families().get(top.model_type)
    sides = (top.values.get("encoder"), top.values.get("decoder"))
    return (
        family is not None and family.whole is not None and any(isinstance(s, dict) for s in sides)
    )


def _descend(level: Config, depth: int) -> Config:
    for key in _TEXT_KEYS:
        inner = level.values.get(key)
        if not isinstance(inner, dict):
            continue
        if not _states_sizes(inner) and _states_sizes(level.values):
            continue
        if key in _DECODERS and any(isinstance(level.values.get(k), dict) for k in _SOURCES):
            inner = {**inner, "is_decoder": True, "add_cross_attention": True}
        path = f"{level.path}{key}."
        stated = type_of(inner, path)
        model_type = stated or nested_type(level.model_type, key) or _flat(level.model_type)
        if stated and stated not in families() and _flat(level.model_type) in families():
            model_type = _flat(level.model_type)  # some files name the outer type or a stray one
        found = Config(
            values=own_names(model_type, inner),
            model_type=model_type,
            path=path,
            notes=level.notes,
            defaults=class_defaults(model_type),
        )
        return _descend(found, depth + 1) if depth < 2 else found
    if level.model_type and level.model_type not in families():
        flat = nested_type(level.model_type, "text_config")
        if flat in families() and _states_sizes(level.values):  # older files of such types are flat
            level.model_type = flat
            level.defaults = {**class_defaults(flat), **level.defaults}
    return level


def _flat(outer: str) -> str:
    """The text family of an outer type where there is one called so, or with ``_text`` added."""
    for name in (f"{outer}_text", outer):
        if name in families():
            return name
    return ""
