"""mha-configurator: advice on a transformer's attention geometry, with sources and numbers.

>>> from configurator import Request, recommend
>>> recommend(Request(params="7B", context="32k", target="h100-sxm")).recommendation.d_head
128
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from configurator.api import audit, check, compare, recommend
    from configurator.catalog.published import model
    from configurator.catalog.targets import device
    from configurator.core.errors import UsageError
    from configurator.core.latency import predict_latency
    from configurator.schema import GeometryRequest, Request

_PUBLIC = {
    "GeometryRequest": "configurator.schema",
    "Request": "configurator.schema",
    "UsageError": "configurator.core.errors",
    "audit": "configurator.api",
    "check": "configurator.api",
    "compare": "configurator.api",
    "device": "configurator.catalog.targets",
    "model": "configurator.catalog.published",
    "predict_latency": "configurator.core.latency",
    "recommend": "configurator.api",
}

__all__ = [
    "GeometryRequest",
    "Request",
    "UsageError",
    "__version__",
    "audit",
    "check",
    "compare",
    "device",
    "model",
    "predict_latency",
    "recommend",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
