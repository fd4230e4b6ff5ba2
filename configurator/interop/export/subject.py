"""What is exported: a case with its layers in order, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from configurator.core.case import Case
from configurator.core.errors import UsageError
from configurator.core.layers import LayerGroup, ModelShape
from configurator.interop.huggingface.family import Layer

__all__ = ["FOLDER", "Exported", "RanksError", "Subject", "in_order", "refuse"]

FOLDER = "MODEL_FOLDER"  # stands for a folder that only the reader knows


class RanksError(UsageError):
    """The heads do not allow the ranks asked: the answer is no, rather than the question wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A case to export. ``layers`` are its layers one by one; ``source`` names an existing model.

    ``source`` is empty for a geometry: its weights do not exist yet. ``warnings`` are what was
    assumed on the way here.
    """

    case: Case
    layers: tuple[Layer, ...]
    source: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """Copies of the model that serve side by side on the target."""
        return int(self.case.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Settings for another program.

    Args:
        format: the name of the format.
        file: the name under which the program looks for them, or empty.
        text: what to write there, or to type.
        values: the same settings by name.
        warnings: what the reader must know; nothing is left out silently.
    """

    format: str
    text: str
    values: dict[str, Any]
    file: str = ""
    warnings: tuple[str, ...] = ()


def refuse(who: str, what: str, remedy: str) -> NoReturn:
    """Say that a format cannot express something, and what to do instead."""
    raise UsageError(f"{who} cannot express {what}; {remedy}")


def in_order(shape: ModelShape) -> tuple[Layer, ...]:
    """The layers of a shape one by one; windowed ones lie before each full one, as is usual.

    ``n_layers // period`` full layers mean that every ``period``-th is full, which is how
    ``--full-every`` is counted.
    """
    full = [g for g in shape.groups if g.scope.kind == "full" and g.label == ""]
    local = [g for g in shape.groups if g.scope.kind == "window"]
    if len(shape.groups) == 2 and len(full) == len(local) == 1:
        return _interleaved(full[0], local[0])
    return tuple(_layer(g) for g in shape.groups for _ in range(g.count))


def _interleaved(full: LayerGroup, local: LayerGroup) -> tuple[Layer, ...]:
    total = int(full.count + local.count)
    period = max(1, total // max(1, int(full.count)))
    places = [i for i in range(total) if (i + 1) % period == 0][: int(full.count)]
    whole, part = _layer(full), _layer(local)
    return tuple(whole if i in places else part for i in range(total))


def _layer(group: LayerGroup) -> Layer:
    return Layer(
        attention=group.attention,
        scope=group.scope,
        feed_forward=group.feed_forward,
        norm_params=group.norm_params,
        other_params=group.other_params,
        weights=group.weights,
        label=group.label,
    )
