"""What a command was asked about: a geometry given by hand, or the answer to a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from configurator.core.errors import UsageError

if TYPE_CHECKING:
    from configurator.schema import GeometryRequest, Request

__all__ = ["request_of"]

_BUDGET = ("params", "active_params", "projection")


def request_of(given: dict[str, Any]) -> GeometryRequest | Request:
    """``--d-model --n-heads ...`` as a geometry, or ``--params ...`` as a question.

    Raises ``UsageError`` when both kinds of arguments are given, or neither.
    """
    from configurator.schema import GeometryRequest, Request

    if "n_heads" not in given:
        if "params" not in given:
            raise UsageError(
                "no geometry: give --d-model and --n-heads (with --n-layers for the whole "
                "model), or a budget such as --params 7B"
            )
        return Request(**given)
    budget = [name for name in _BUDGET if name in given]
    if budget:
        flag = budget[0].replace("_", "-")
        raise UsageError(
            f"--{flag} asks for a recommendation and --n-heads gives a geometry; use one of the two"
        )
    return GeometryRequest(**given)
