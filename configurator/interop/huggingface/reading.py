"""The reader: any model's configuration in, its shape and what to know about it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from configurator.core.dtypes import dtype
from configurator.core.errors import UsageError, show
from configurator.core.layers import ModelShape
from configurator.interop.huggingface.assemble import build
from configurator.interop.huggingface.config import Config, Notes
from configurator.interop.huggingface.family import Layer, State, families
from configurator.interop.huggingface.nesting import text_level, type_of
from configurator.interop.huggingface.positions import scaled_positions
from configurator.interop.huggingface.towers import Tower, towers_of
from configurator.interop.huggingface.tying import is_tied
from configurator.interop.huggingface.unknown import UNKNOWN, describe

__all__ = ["Reading", "read_shape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A model as its configuration describes it.

    Args:
        shape: the model.
        layers: its layers one by one, in order.
        model_type: the type that the file states, of its outermost level.
        text_type: the family that the text model was read as.
        known: that family is known; else the counts rest on what ``warnings`` say.
        unknown: keys that would be needed to count parameters.
        active_unknown: keys that would be needed to count those that one token visits.
        towers: other modalities beside the text model.
        heads_key: the key that holds the query heads, with its place in the file.
        kv_heads_key: the same for KV heads.
        max_positions: the longest context that the file states; 0 where it does not.
        dtype: the element type of the weights that the file states, or empty.
        warnings: what was assumed, and what a reader should know.
        source_fixed: the number of source positions is built in (Whisper).
        source_default: source positions where nobody says; 0 where the file does not either.
        longest: ``max_positions`` after rotary scaling; 0 where that is not known.
    """

    shape: ModelShape
    layers: tuple[Layer, ...]
    model_type: str
    text_type: str
    known: bool
    unknown: tuple[str, ...]
    towers: tuple[Tower, ...]
    heads_key: str
    kv_heads_key: str
    max_positions: int
    dtype: str
    warnings: tuple[str, ...]
    source_fixed: bool = False
    source_default: int = 0
    longest: int = 0
    active_unknown: tuple[str, ...] = ()

    @property
    def params_known(self) -> bool:
        """Whether the parameters of the whole model can be counted."""
        return not self.unknown

    @property
    def states(self) -> tuple[tuple[State, int], ...]:
        """Each kind of fixed state and the number of layers that keep one."""
        found: dict[State, int] = {}
        for layer in self.layers:
            if layer.state is not None:
                found[layer.state] = found.get(layer.state, 0) + 1
        return tuple(found.items())


def read_shape(values: Mapping[str, Any]) -> Reading:
    """The model that ``values``, a parsed ``config.json``, describes.

    Raises ``UsageError`` where a value is of the wrong kind, where head counts or lists cannot be
    right, and where the file states no sizes.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"a configuration is a mapping, not {show(values)}")
    notes = Notes()
    text, top = text_level(_plain_keys(values), notes)
    if top is text:  # a flat file of a composite type was read as its text part: it has towers too
        top = replace(top, model_type=type_of(values) or top.model_type)
    family = families().get(text.model_type, UNKNOWN)
    if not family.known:
        describe(text)
    towers = towers_of(top, text)
    beside = sum(tower.params or 0 for tower in towers)
    if family.whole is not None:
        shape, layers = family.whole(text, family)
    else:
        shape, layers = build(text, family, tied=is_tied(text, top, family), towers=beside)
    _check_widths(text, layers)
    for tower in towers:
        if tower.params is None:
            notes.warn(f"{tower.note}: parameters are those of the text model alone")
    for text_note in family.notes:
        notes.warn(text_note)
    _say_assumed(notes, text.model_type)
    return Reading(
        shape=shape,
        layers=layers,
        model_type=top.model_type,
        text_type=text.model_type,
        known=family.known,
        unknown=tuple(dict.fromkeys(notes.unknown)),
        towers=towers,
        heads_key=text.key("num_attention_heads"),
        kv_heads_key=text.key("num_key_value_heads"),
        max_positions=_positions(text),
        dtype=_dtype(text, top),
        warnings=tuple(notes.warnings),
        source_fixed=notes.source_fixed,
        source_default=notes.source_default,
        longest=scaled_positions(text, _positions(text)),
        active_unknown=tuple(dict.fromkeys(notes.active_unknown)),
    )


def _plain_keys(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keys with hyphens, as GPT-NeoX writes them, under the names with underscores."""
    return {
        key.replace("-", "_") if isinstance(key, str) else key: value
        for key, value in values.items()
    } | {key: value for key, value in values.items() if key == str(key).replace("-", "_")}


def _check_widths(text: Config, layers: tuple[Layer, ...]) -> None:
    """Refuse heads that are so many that nothing is left for one of them."""
    for layer in layers:
        attention = layer.attention
        width = getattr(attention, "d_head", 1)
        if attention is not None and width < 1:
            raise UsageError(
                f"{text.key('num_attention_heads')} {attention.n_heads} is more than "
                f"{text.key('hidden_size')} has room for: a head would be less than one wide"
            )


def _positions(text: Config) -> int:
    longest = [
        text.whole(key, text.values[key], least=1, most=10**12)
        for key in ("model_max_length", "max_position_embeddings")
        if isinstance(text.values.get(key), int)
        and not isinstance(text.values[key], bool)
        and 0 < text.values[key] <= 10**12
    ]
    if longest:
        return max(longest)
    found = text.find("max_position_embeddings")
    if found is None or isinstance(found.value, bool) or not isinstance(found.value, int):
        return 0
    return found.value if 0 < found.value <= 10**12 else 0


def _dtype(text: Config, top: Config) -> str:
    for config in (text, top):
        for key in ("dtype", "torch_dtype"):
            name = config.values.get(key)
            if isinstance(name, str):
                try:
                    return dtype(name).name
                except UsageError:
                    return ""
    return ""


def _say_assumed(notes: Notes, model_type: str) -> None:
    if notes.assumed:
        listed = ", ".join(f"{key} {show(value)}" for key, value in notes.assumed.items())
        notes.warn(
            f"not in the file, so the class defaults of {model_type} in transformers 5.24 hold: "
            f"{listed}"
        )
