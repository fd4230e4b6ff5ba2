"""Short rules that families share: how a flag, a key or a period decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from configurator.core.errors import UsageError
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.scopes import FULL, LINEAR, WINDOW, every, window_size

__all__ = [
    "alternate",
    "as_stated",
    "at_offset",
    "bias_if",
    "feed_forward_proj_gated",
    "flagged",
    "from_first",
    "full_every",
    "linear_every",
    "only_listed",
    "picks",
    "positions",
    "tail_windows",
]


def flagged(name: str, default: bool = False) -> Callable[[Config], bool]:
    """True where the flag ``name`` is."""
    return lambda config: config.flag(name, default)


def as_stated(name: str, default: int, least: int = 1) -> Callable[[Config], int]:
    """The whole number that ``name`` states."""
    return lambda config: config.count(name, default, least=least)


def bias_if(name: str, kind: str, default: bool = False) -> Callable[[Config], str]:
    """Biases of ``kind`` where the flag ``name`` is set."""
    return lambda config: kind if config.flag(name, default) else "none"


def picks(name: str, yes: Any, no: Any, default: bool = False) -> Callable[[Config], Any]:
    """``yes`` where the flag ``name`` is set, else ``no``."""
    return lambda config: yes if config.flag(name, default) else no


def full_every(
    name: str, default: int, at: int | None = None
) -> Callable[[Config, int], list[str]]:
    """A full layer once a period of ``name`` layers, windows between; all full without a window."""

    def pattern(config: Config, n: int) -> list[str]:
        if not window_size(config):
            return [FULL] * n
        period = _period(config, name, default)
        return every(period, n, full_at=at)

    return pattern


def _period(config: Config, name: str, default: int) -> int:
    found = config.find(name)
    if found is None:
        return default
    if isinstance(found.value, str):  # EXAONE writes LLLG: the period is the string's length
        return max(1, len(found.value))
    return config.count(name, default, least=0)


def linear_every(name: str, default: int) -> Callable[[Config, int], list[str]]:
    """A full attention layer at the end of each period of ``name`` layers, linear ones between."""

    def pattern(config: Config, n: int) -> list[str]:
        period = config.count(name, default)
        return [FULL if (i + 1) % period == 0 else LINEAR for i in range(n)]

    return pattern


def alternate(config: Config, n: int) -> list[str]:
    """Windowed, full, windowed, ... from layer 0; all full without a window."""
    return every(2, n) if window_size(config) else [FULL] * n


def tail_windows(config: Config, n: int) -> list[str]:
    """Windows from layer ``max_window_layers`` on, where windows are switched on (Qwen)."""
    if not window_size(config):
        return [FULL] * n
    first = config.count("max_window_layers", n, least=0)
    return [WINDOW if i >= first else FULL for i in range(n)]


def from_first(period: int) -> Callable[[Config, int], list[str]]:
    """A full layer at index 0 of each ``period`` layers, windows after it."""

    def pattern(config: Config, n: int) -> list[str]:
        return every(period, n, full_at=0) if window_size(config) else [FULL] * n

    return pattern


def at_offset(config: Config, period: int, offset: int) -> Callable[[int], bool]:
    """Layers that attend once a period, by ``attn_layer_period`` and ``attn_layer_offset``."""
    period = config.count("attn_layer_period", period)
    offset = config.count("attn_layer_offset", offset, least=0)
    if offset >= period:
        raise UsageError(
            f"{config.named('attn_layer_offset')} {offset} is not below "
            f"{config.named('attn_layer_period')} {period}; no layer would attend"
        )
    return lambda i: i % period == offset


def only_listed(config: Config, n: int) -> list[str]:
    """All full: windows exist only where the file's own ``layer_types`` put them."""
    return [FULL] * n


def positions(default: int | None = None, spare: int = 0) -> Callable[[Config], int]:
    """A table of learned positions: ``max_position_embeddings`` rows and ``spare`` more."""

    def count(config: Config) -> int:
        rows = config.count("max_position_embeddings", default)
        return (rows + spare) * config.count("hidden_size")

    return count


def feed_forward_proj_gated(config: Config) -> bool:
    """Whether T5's ``feed_forward_proj`` names a gated feed-forward."""
    return config.text("feed_forward_proj", "relu").startswith("gated")
