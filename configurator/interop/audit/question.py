"""What an audit is asked: cache type and mode, context and batch, ranks, pages, target, budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import index
from typing import SupportsIndex

from configurator.core.case import Device
from configurator.core.dtypes import LATENT_FP8, CacheType, cache_type
from configurator.core.errors import UsageError, show, unknown
from configurator.core.units import parse_bytes, parse_tokens

__all__ = ["CACHE_MODES", "AuditQuestion", "ask"]

CACHE_MODES = ("latent", "rebuilt")
_LARGEST = {"batch": 10**7, "tensor-parallel": 65536, "page-size": 10**6}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """One question. ``None`` means not asked: the model's or the target's own value then holds."""

    kv: CacheType = field(default_factory=lambda: cache_type("bf16"))
    context: int | None = None
    batch: int = 1
    tensor_parallel: int | None = None
    device: Device | None = None
    page_size: int = 1
    source_len: int | None = None
    kv_budget: int | None = None
    cache_mode: str = "latent"


def ask(
    *,
    kv_dtype: str | CacheType = "bf16",
    context: str | int | None = None,
    batch: int = 1,
    tensor_parallel: int | None = None,
    device: Device | None = None,
    page_size: int = 1,
    source_len: str | int | None = None,
    kv_budget: str | int | None = None,
    cache_mode: str = "latent",
    **others: object,
) -> AuditQuestion:
    """A question from what a user typed; raises ``UsageError`` naming the argument."""
    for name in others:
        known = ask.__kwdefaults__ or {}
        raise unknown("argument", name, known, f"known: {', '.join(known)}")
    if cache_mode not in CACHE_MODES:
        raise UsageError(f"cache-mode {show(cache_mode)} is not known; use latent or rebuilt")
    if not isinstance(device, Device | None):
        raise UsageError(
            f"device {show(device)} is not a Device; give device('h100-sxm'), or a target's name"
        )
    return AuditQuestion(
        kv=_cache_type(kv_dtype),
        context=None if context is None else parse_tokens(context),
        batch=_whole("batch", batch),
        tensor_parallel=(
            None if tensor_parallel is None else _whole("tensor-parallel", tensor_parallel)
        ),
        device=device,
        page_size=_whole("page-size", page_size),
        source_len=None if source_len is None else parse_tokens(source_len, "source-len"),
        kv_budget=None if kv_budget is None else parse_bytes(kv_budget, "kv-budget"),
        cache_mode=cache_mode,
    )


def _whole(name: str, value: object) -> int:
    """A whole number from 1 to the largest that is meant."""
    number = index(value) if isinstance(value, SupportsIndex) else 0
    if isinstance(value, bool) or not 1 <= number <= _LARGEST[name]:
        raise UsageError(
            f"{name} {show(value)} must be a whole number from 1 to {_LARGEST[name]:,}"
        )
    return number


def _cache_type(name: str | CacheType) -> CacheType:
    """A cache type by name; beside the usual ones FlashMLA's layout of latents, fp8_ds_mla."""
    if isinstance(name, str) and name.strip().lower() == LATENT_FP8.name:
        return CacheType(LATENT_FP8, LATENT_FP8)
    return cache_type(name)
