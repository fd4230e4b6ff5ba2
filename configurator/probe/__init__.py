"""The test hook: does a small trained version of a geometry do what attention is for?

``run`` and ``ProbeResult`` are resolved on first use, so that importing this package does not
load torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from configurator.probe.hook import ProbeResult, run

__all__ = ["ProbeResult", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from configurator.probe import hook

        return getattr(hook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
