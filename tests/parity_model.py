"""What a proven model class is: its type, its class, a small configuration, and how it is fed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["TOKENS", "WINDOW", "Model"]

TOKENS = 40
WINDOW = 16


@dataclass(frozen=True, kw_only=True)
class Model:
    """One class of transformers and a configuration for it.

    ``feed`` says how a forward pass is run: ``ids``, ``source`` (an encoder-decoder), or ``""``
    where none is (no cache, or inputs that are not tokens). ``only_class`` are keys for the class
    alone that an audit need not know.
    """

    model_type: str
    cls: str
    config: dict[str, Any]
    feed: str = "ids"
    only_class: dict[str, Any] = field(default_factory=dict)
