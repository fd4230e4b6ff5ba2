"""The micro-benchmark: is the cache as large, and the attention as fast, as was predicted?

``measure(report)`` is the short way; the command line is ``mha-configurator bench``. Needs torch,
which is loaded when something is measured and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from configurator.core.errors import MissingExtra

if TYPE_CHECKING:
    from configurator.bench.verification import Verification, measure, verify

__all__ = ["Verification", "measure", "verify"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("bench", "torch", "the micro-benchmark") from None
    from configurator.bench import verification

    return getattr(verification, name)
