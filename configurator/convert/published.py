"""What published conversions lost, chosen for a change of heads: figures with their ids."""

from __future__ import annotations

import re
from dataclasses import dataclass

from configurator.catalog.evidence import Result, study
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent

__all__ = ["Published", "published_losses"]

# Studies of conversions, first hand and largest models first.
_TO_FEWER_HEADS = ("ainslie-2023", "jin-2024-align", "chen-2024-dha", "zuhri-2024-mlkv")
_UNTRAINED = ("audit-2026",)
_TO_LATENT = ("ji-2025-mha2mla", "meng-2025-transmla")
_CUT = re.compile(r"cut by ([\d.]+) %")
_SIZE = re.compile(r"([\d.]+)\s*([MB])\b")
_MOST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published result: what was done to which model, and what it lost."""

    id: str
    study: str
    says: str
    source: str


def published_losses(before: Attention, after: Attention, params: float) -> tuple[Published, ...]:
    """Results of conversions like this one, the most alike first; at most six.

    For fewer heads that is the nearest factor between KV heads before and after; for a latent
    the nearest share of the cache that is cut, at the nearest size. Results before any training
    come last: they say why it is needed.
    """
    if isinstance(after, Latent):
        found = _latents(1.0 - after.cache_elements() / before.cache_elements(), params)
    elif isinstance(before, GroupedQuery) and isinstance(after, GroupedQuery):
        found = _grouped(before.n_kv_heads / after.n_kv_heads, after.n_kv_heads == 1)
    else:
        found = []
    return tuple(_published(r) for r in found[:_MOST])


def _grouped(factor: float, to_one: bool) -> list[Result]:
    def apart(r: Result) -> float:
        return abs((r.n_heads / r.n_kv_heads if r.n_kv_heads else factor) / factor - 1.0)

    found: list[Result] = []
    for name in _TO_FEWER_HEADS:
        results = [r for r in study(name).results if _converts(r)]
        wanted = [r for r in results if (r.n_kv_heads == 1) == to_one] or results
        nearest = min(map(apart, wanted), default=0.0)
        found += [r for r in wanted if apart(r) == nearest][:2]
    for name in _UNTRAINED:
        results = list(study(name).results)
        nearest = min(map(apart, results))
        found += [r for r in results if apart(r) == nearest]
    return found


def _converts(r: Result) -> bool:
    """A conversion of MHA by merging heads, scored as a whole; not another model or one task."""
    merged = r.variant.startswith(("GQA", "MQA (", "MHA->")) or r.variant == "MQA"
    whole = ("average", "share of MHA", "LAMBADA")
    return merged and any(word in r.metric for word in whole)


def _latents(cut: float, params: float) -> list[Result]:
    def key(r: Result) -> tuple[float, float]:
        size = _SIZE.search(r.model)
        billions = float(size[1]) * (1.0 if size[2] == "B" else 1e-3) if size else 1.0
        share = _CUT.search(r.control)
        return (
            max(billions / (params / 1e9), params / 1e9 / billions),
            abs(float(share[1]) / 100.0 - cut) if share else 0.0,
        )

    results = [r for name in _TO_LATENT[:1] for r in study(name).results if "MLA" in r.variant]
    results = [r for r in results if "Int" not in r.variant]
    nearest = min(key(r)[0] for r in results)
    same = sorted((r for r in results if key(r)[0] == nearest), key=lambda r: key(r)[1])
    return same[:3] + [r for name in _TO_LATENT[1:] for r in study(name).results]


def _published(r: Result) -> Published:
    value = "no figure" if r.value is None else f"{r.value:g}"
    against = "" if r.baseline_value is None else f" against {r.baseline_value:g} ({r.baseline})"
    trained = f", trained: {r.trained}" if r.trained else ""
    note = f"; {r.note}" if r.note else ""
    return Published(
        id=r.id,
        study=r.study,
        says=f"{r.variant} on {r.model}: {r.metric} {value}{against}{trained}{note}",
        source=study(r.study).source,
    )
