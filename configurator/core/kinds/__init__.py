"""Kinds of attention. The folder is the registry: a new kind is one module here.

A module names its class in ``KIND``. Every kind only does arithmetic, so its fields hold whole
numbers or numpy columns of them, and one formula serves a case and a search grid alike.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, runtime_checkable

from configurator.core.dtypes import CacheType
from configurator.core.units import Count, Real

__all__ = ["Attention", "kinds"]


@runtime_checkable
class Attention(Protocol):
    """What costs, latency and rules ask of a kind of attention. All counts are per layer."""

    @property
    def d_model(self) -> Count:
        """Width of the residual stream."""
        ...

    @property
    def n_heads(self) -> Count:
        """Query heads."""
        ...

    @property
    def projection(self) -> str:
        """MHA, GQA, MQA or MLA, for one geometry (not for columns)."""
        ...

    @property
    def kv_heads(self) -> Count:
        """Key/value heads that a cache holds: 1 for a latent shared by all heads."""
        ...

    def params(self) -> Count:
        """Weights, biases and norms of the layer's attention."""
        ...

    def matmul_params(self) -> Count:
        """Weights that take part in a matrix product: what a token multiplies through."""
        ...

    def cache_elements(self) -> Count:
        """Values cached for each token."""
        ...

    def cache_bytes(self, kv: CacheType, tensor_parallel: Count = 1) -> Count:
        """Bytes one more token adds on one rank, replicas included."""
        ...

    def score_flops(self, phase: str = "decode") -> Real:
        """FLOPs for one query token against one key, in ``decode`` or ``prefill``."""
        ...


@cache
def kinds() -> dict[str, type]:
    """The kinds of attention, by the module that holds them."""
    found = {}
    for info in iter_modules(__path__):
        found[info.name] = import_module(f"{__name__}.{info.name}").KIND
    return found
