"""What a model's class fills in for keys that its file leaves out.

The table holds facts read from the configuration classes of transformers 5.24: the value of each
sizing key and flag that is not null there, the classes that nested levels are read as, and other
names that a class takes for its keys. A test compares it with the installed release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["class_defaults", "known_types", "nested_type", "own_names"]


@cache
def _table() -> dict[str, dict[str, Any]]:
    file = resources.files("configurator.interop.huggingface") / "class_defaults.json"
    table: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return table


def class_defaults(model_type: str) -> dict[str, Any]:
    """Defaults of the class behind ``model_type``; empty where transformers has none."""
    return dict(_table()["defaults"].get(model_type, {}))


def own_names(model_type: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """``values`` with keys that the class takes under another name given its own name too."""
    aliases = _table()["aliases"].get(model_type, {})
    own = {
        aliases[key]: value
        for key, value in values.items()
        if key in aliases and aliases[key] not in values and value is not None
    }
    return {**values, **own} if own else values


def nested_type(model_type: str, key: str) -> str:
    """The model type that ``key`` of a ``model_type`` file is read as where it names none."""
    return str(_table()["nested"].get(model_type, {}).get(key, ""))


def known_types() -> tuple[str, ...]:
    """Model types whose class defaults are known."""
    return tuple(_table()["defaults"])
