"""Typed access to one level of a configuration: spellings, class defaults, and plain refusals.

A look-up has four answers that must not be mixed up: stated, stated as null, absent but fixed by
the model's class, and unknown. Null never becomes zero, and a default is never used silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from configurator.core.errors import UsageError, show
from configurator.interop.huggingface.spellings import SPELLINGS

__all__ = ["MAX_LAYERS", "Config", "Notes"]

MAX_COUNT = 10**8
MAX_LAYERS = 4096
_MOST = {
    "num_hidden_layers": MAX_LAYERS,
    "num_attention_heads": 2**16,
    "num_key_value_heads": 2**16,
    "num_experts": 2**16,
}
# Sizes that a file may state twice, under names that ought to agree.
_ONE_ANSWER = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
)  # fmt: skip
# Sizes whose class default is announced where it is used; switches and periods are not.
_SAID = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "intermediate_size", "moe_intermediate_size", "vocab_size", "num_experts",
    "num_experts_per_tok", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
    "v_head_dim", "sliding_window", "attention_chunk_size",
)  # fmt: skip


@dataclass(slots=True)
class Notes:
    """What a reader must be told: warnings, sizes that the file did not state, and sizes unknown.

    With anything in ``unknown`` the parameters cannot be counted, with anything in
    ``active_unknown`` not those that one token visits. ``source_fixed`` says that
    the number of source positions is built into the model, ``source_default`` what it is where
    nobody says (0: unknown).
    """

    warnings: list[str] = field(default_factory=list)
    assumed: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    active_unknown: list[str] = field(default_factory=list)
    source_fixed: bool = False
    source_default: int = 0

    def warn(self, text: str) -> None:
        """Add ``text`` once."""
        if text not in self.warnings:
            self.warnings.append(text)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a key was found: its spelling, its value, and whether the file states it."""

    key: str
    value: Any
    stated: bool


@dataclass(slots=True, kw_only=True)
class Config:
    """One level of a configuration file and the defaults of its model's class.

    Args:
        values: the level as the file holds it.
        model_type: the family that it is read as.
        defaults: what the class fills in for keys that are absent.
        path: where the level lies in the file, such as ``text_config.``.
        notes: the collector shared by all levels.
    """

    values: Mapping[str, Any]
    model_type: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    notes: Notes = field(default_factory=Notes)

    def named(self, key: str) -> str:
        """The key as a message names it: with its place in the file."""
        return f"{self.path}{key}"

    def key(self, name: str) -> str:
        """The spelling of ``name`` that is in use, with its place in the file."""
        found = self.find(name)
        return self.named(found.key if found else name)

    def has(self, name: str) -> bool:
        """Whether the file states ``name``, under any spelling, as something other than null."""
        found = self.find(name)
        return found is not None and found.stated

    def is_null(self, name: str) -> bool:
        """Whether the file gives ``name`` as null and under no other spelling as a value."""
        keys = [k for k in SPELLINGS.get(name, (name,)) if k in self.values]
        return bool(keys) and all(self.values[k] is None for k in keys)

    def overrides_default(self, name: str) -> bool:
        """Whether the file gives as null what the class has a value for."""
        spellings = SPELLINGS.get(name, (name,))
        return self.is_null(name) and any(self.defaults.get(k) is not None for k in spellings)

    def find(self, name: str) -> Found | None:
        """``name`` in the file, else in the class defaults; ``None`` where null or unknown."""
        spellings = SPELLINGS.get(name, (name,))
        stated = [k for k in spellings if self.values.get(k) is not None]
        if stated:
            return Found(stated[0], self.values[stated[0]], True)
        if any(k in self.values for k in spellings):
            return None
        for key in spellings:
            if self.defaults.get(key) is not None:
                return Found(key, self.defaults[key], False)
        return None

    def maybe(self, name: str, least: int = 1) -> int | None:
        """A whole number, or ``None`` where it is null or unknown."""
        found = self.find(name)
        if found is None:
            return None
        value = self.whole(found.key, found.value, least, _MOST.get(name, MAX_COUNT))
        if name in _ONE_ANSWER:
            self._say_other_spellings(name, found)
        if not found.stated and name in _SAID:
            self.notes.assumed[self.named(found.key)] = value
        return value

    def _say_other_spellings(self, name: str, used: Found) -> None:
        for key in SPELLINGS[name]:
            other = self.values.get(key)
            if used.stated and isinstance(other, int) and other != used.value:
                self.notes.warn(
                    f"{self.named(used.key)} is {used.value} but {self.named(key)} is "
                    f"{show(other)}: {used.key} is read"
                )

    def count(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number; ``default`` where it is null or unknown, else refused."""
        value = self.maybe(name, least)
        if value is None:
            value = default
        if value is None:
            raise UsageError(f"{self.named(name)} is missing; state it as a whole number")
        return value

    def whole(self, key: str, value: Any, least: int = 1, most: int = MAX_COUNT) -> int:
        """``value`` of ``key`` as a whole number between ``least`` and ``most``."""
        if isinstance(value, bool) or not isinstance(value, int):
            if isinstance(value, float) and value.is_integer() and abs(value) <= most:
                value = int(value)
            else:
                raise UsageError(
                    f"{self.named(key)} is {show(value)}, not a whole number; state a count of "
                    f"{least} or more"
                )
        if value < least:
            raise UsageError(f"{self.named(key)} is {show(value)}; it must be {least} or more")
        if value > most:
            raise UsageError(f"{self.named(key)} is {show(value)}; no model has over {most:,}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false; ``default`` where unknown. A null is false, as the classes take it."""
        found = self.find(name)
        if found is None:
            return default and not self.is_null(name)
        if isinstance(found.value, bool):
            return found.value
        if found.value in (0, 1) and isinstance(found.value, int):
            return bool(found.value)
        raise UsageError(
            f"{self.named(found.key)} is {show(found.value)}; it must be true or false"
        )

    def text(self, name: str, default: str = "") -> str:
        """A string; ``default`` where null or unknown."""
        found = self.find(name)
        if found is None:
            return default
        if not isinstance(found.value, str):
            raise UsageError(f"{self.named(found.key)} is {show(found.value)}; it must be a string")
        return found.value

    def real(self, name: str, default: float | None = None) -> float:
        """A number; ``default`` where null or unknown, else refused."""
        found = self.find(name)
        if found is None:
            if default is None:
                raise UsageError(f"{self.named(name)} is missing; state it as a number")
            return default
        value = found.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{self.named(found.key)} is {show(value)}; it must be a number")
        if not -1e9 <= value <= 1e9:
            raise UsageError(f"{self.named(found.key)} is {show(value)}; no model has that")
        return float(value)

    def sequence(self, name: str) -> list[Any] | None:
        """A list, or ``None`` where null or unknown."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, list):
            raise UsageError(f"{self.named(found.key)} is {show(found.value)}; it must be a list")
        if len(found.value) > MAX_LAYERS:
            raise UsageError(
                f"{self.named(found.key)} has {len(found.value):,} entries; no model has over "
                f"{MAX_LAYERS:,} layers"
            )
        return found.value

    def wholes(self, name: str, least: int = 0) -> list[int] | None:
        """A list of whole numbers, or ``None`` where null or unknown."""
        items = self.sequence(name)
        if items is None:
            return None
        key = self.find(name).key  # type: ignore[union-attr]
        return [self.whole(f"{key}[{i}]", item, least) for i, item in enumerate(items)]

    def words(self, name: str) -> list[str] | None:
        """A list of strings, or ``None`` where null or unknown."""
        items = self.sequence(name)
        if items is None:
            return None
        for i, item in enumerate(items):
            if not isinstance(item, str):
                raise UsageError(f"{self.key(name)}[{i}] is {show(item)}; it must be a string")
        return list(items)

    def per_layer(self, name: str, layers: int, *, least: int = 1) -> list[int] | None:
        """One whole number a layer, from a number or a list of the right length."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found.value, list):
            return [self.count(name, least=least)] * layers
        values = self.wholes(name, least) or []
        if len(values) != layers:
            raise UsageError(
                f"{self.named(found.key)} lists {len(values)} layers but "
                f"{self.key('num_hidden_layers')} is {layers}; they must agree"
            )
        return values

    def entry(self, name: str, layer: int, least: int = 1) -> int | None:
        """A whole number for all layers, or ``layer``'s in a list; ``None`` where unknown."""
        found = self.find(name)
        if found is None or not isinstance(found.value, list):
            return self.maybe(name, least)
        self.one_a_layer(found.key, len(found.value), layer)
        return self.whole(f"{found.key}[{layer}]", found.value[layer], least)

    def one_a_layer(self, key: str, entries: int, layer: int) -> None:
        """Refuse a list that is not as long as the model; extra prediction layers may be in it."""
        n = self.maybe("num_hidden_layers") or entries
        spare = self.maybe("num_nextn_predict_layers", least=0) or 0
        if entries not in (n, n + spare) or layer >= entries:
            raise UsageError(
                f"{self.named(key)} lists {entries} layers but {self.key('num_hidden_layers')} is "
                f"{n}; give one entry a layer"
            )

    def indices(self, name: str, layers: int, first: int = 0) -> set[int] | None:
        """Layers from 0 that a list names, counting from ``first``; ``None`` where unknown."""
        listed = self.wholes(name, first)
        beyond = [i for i in listed or () if i >= layers + first]
        if beyond and self.has(name):
            raise UsageError(
                f"{self.key(name)} names layer {beyond[0]} of {layers}; layers are counted from "
                f"{first} there"
            )
        return None if listed is None else {i - first for i in listed}

    def section(self, name: str, model_type: str | None = None) -> Config | None:
        """A nested level, or ``None`` where null or absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise UsageError(f"{self.named(name)} is {show(value)}; it must be an object")
        return Config(
            values=value,
            model_type=self.model_type if model_type is None else model_type,
            path=f"{self.path}{name}.",
            notes=self.notes,
        )
