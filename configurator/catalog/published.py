"""The published models: all of them, one by name, and those nearest to a geometry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import log, sqrt
from typing import Any

from configurator.catalog.model_card import (
    PublishedModel,
    best_total,
    from_table,
    is_mixture,
)
from configurator.catalog.store import load
from configurator.core.case import Case
from configurator.core.cost import params_total
from configurator.core.errors import UsageError, unknown
from configurator.core.layers import ModelShape
from configurator.core.report import Precedent
from configurator.core.units import format_count

__all__ = [
    "PublishedModel",
    "model",
    "model_names",
    "models",
    "nearest_tables",
    "neighbours",
]

# What a factor e in each quantity is worth when models are compared. Size and width say what a
# model is; head counts say which choice it made. A year of age counts a little, so that of two
# equally near models the one closer to today's practice comes first.
_WEIGHTS = {
    "total_params": 1.0,
    "d_model": 2.0,
    "n_layers": 1.0,
    "n_heads": 0.5,
    "n_kv_heads": 0.25,
    "d_head": 0.5,
}
_PER_YEAR = 0.1
_OTHER_KIND = 2.0  # a mixture beside a dense model
_WORDS = {
    "total_params": "parameters",
    "d_model": "d_model",
    "n_layers": "layers",
    "n_heads": "heads",
    "n_kv_heads": "KV heads",
    "d_head": "d_head",
}


def models() -> list[PublishedModel]:
    """Every published model of the catalog, by year, organisation and size."""
    found = [_model(name) for name in _tables()]
    return sorted(found, key=lambda m: (m.year, m.org, m.total_params, m.name))


def model_names() -> list[str]:
    """The catalog's names of models."""
    return sorted(_tables())


def model(name: str) -> PublishedModel:
    """One published model by name or title; case, spaces and the organisation's prefix are free.

    Raises:
        UsageError: an unknown name, with the nearest ones.
    """
    folded = re.sub(r"[\s_]+", "-", str(name).strip().casefold())
    for candidate in (folded, folded.rpartition("/")[2]):
        if candidate in _tables():
            return _model(candidate)
        if candidate in _titles():
            return _model(_titles()[candidate])
    if not folded:
        raise UsageError("model is empty; write a name such as llama-3.1-8b")
    raise unknown("model", str(name), _tables(), "`models` lists them")


def neighbours(case: Case, n: int = 3) -> list[Precedent]:
    """The ``n`` published models nearest to a case's shape, and how each differs from it.

    Distance is the root of the weighted squares of log ratios of total parameters, d_model,
    layers and head counts, plus a little for age and a lot for a mixture beside a dense model.
    Models of another architecture are left out; a lab that repeats one shape counts once. They
    illustrate; that a model was published is no evidence that its geometry is best.
    """
    shape = case.shape
    asked = _figures(shape)
    moe = any(g.feed_forward.kind == "moe" for g in shape.groups if g.feed_forward is not None)
    found = nearest_tables(asked, arch=shape.arch, moe=moe, n=n)
    return [_precedent(table, name, asked) for _, name, table in found]


def nearest_tables(
    asked: Mapping[str, int], *, arch: str = "decoder", moe: bool | None = None, n: int = 3
) -> list[tuple[float, str, dict[str, Any]]]:
    """Distance, name and table of the nearest models; ``asked`` holds any of the six figures.

    The figures are total_params, d_model, n_layers, n_heads, n_kv_heads and d_head: of a latent,
    as recommended, the width of a head without its rotary part.
    """
    ranked = sorted(
        (_distance(asked, moe, table), name)
        for name, (table, _) in _tables().items()
        if table["arch"] == arch
    )
    kept: dict[tuple[object, ...], tuple[float, str, dict[str, Any]]] = {}
    for distance, name in ranked:
        table = _tables()[name][0]
        key = tuple(table.get(k) for k in ("org", "n_layers", "d_model", "n_heads", "n_kv_heads"))
        kept.setdefault(key, (distance, name, table))
        if len(kept) == n:
            break
    return list(kept.values())


def _figures(shape: ModelShape) -> dict[str, int]:
    """The six figures of a shape; a latent has no KV heads to compare, and no rotary part."""
    attention = shape.attention
    latent = attention.projection == "MLA"
    found = {
        "total_params": int(params_total(shape)),
        "d_model": int(shape.d_model),
        "n_layers": int(shape.n_layers),
        "n_heads": int(attention.n_heads),
        "d_head": int(getattr(attention, "qk_nope_head_dim" if latent else "d_head", 0)),
    }
    if not latent:
        found["n_kv_heads"] = int(attention.kv_heads)
    return found


def _have(table: Mapping[str, Any], key: str) -> int:
    if key == "total_params":
        return best_total(
            table.get("params_basis", ""),
            table.get("published_params", 0),
            table.get("counted_params", 0),
        )
    if key == "n_kv_heads" and table["projection"] == "MLA":
        return 0
    if key == "d_head" and table["projection"] == "MLA":
        return int(table.get("qk_nope_head_dim", 0))
    return int(table.get(key, 0))


def _distance(asked: Mapping[str, int], moe: bool | None, table: Mapping[str, Any]) -> float:
    total = 0.0
    for key, weight in _WEIGHTS.items():
        have, want = _have(table, key), asked.get(key, 0)
        if have and want:
            total += (weight * log(have / want)) ** 2
        elif want:  # a model that does not state a figure is not thereby near
            total += weight**2
    mixture = is_mixture(
        table.get("n_experts", 0), table.get("active_params", 0), table.get("published_params", 0)
    )
    if moe is not None and moe != mixture:
        total += _OTHER_KIND**2
    return sqrt(total) + _PER_YEAR * (_latest() - int(table["year"]))


def _precedent(table: Mapping[str, Any], name: str, asked: Mapping[str, int]) -> Precedent:
    return Precedent(
        id=name,
        name=table["title"],
        org=table["org"],
        year=table["year"],
        params_total=_have(table, "total_params"),
        projection=table["projection"],
        n_heads=table["n_heads"],
        n_kv_heads=table.get("n_kv_heads", 0),
        d_head=_have(table, "d_head"),
        d_model=table["d_model"],
        n_layers=table["n_layers"],
        difference=_difference(table, asked),
        source=table["sources"][0],
    )


def _difference(table: Mapping[str, Any], asked: Mapping[str, int]) -> str:
    """Each figure that differs, the model's first; totals within 5 % are called equal."""
    said = []
    for key, word in _WORDS.items():
        have, want = _have(table, key), asked.get(key, 0)
        if not have or not want or have == want:
            continue
        if key == "total_params":
            if abs(log(have / want)) > 0.05:
                said.append(f"{format_count(have)} {word} against {format_count(want)}")
        elif key in ("d_model", "d_head"):
            said.append(f"{word} {have:,} against {want:,}")
        else:
            said.append(f"{have:,} {word if have > 1 else word.removesuffix('s')} against {want:,}")
    if table["projection"] == "MLA" and "n_kv_heads" in asked:
        said.append("MLA")
    return "; ".join(said) or "the same figures"


@cache
def _latest() -> int:
    return max(int(table["year"]) for table, _ in _tables().values())


@cache
def _titles() -> dict[str, str]:
    return {re.sub(r"[\s_]+", "-", t["title"].casefold()): n for n, (t, _) in _tables().items()}


@cache
def _model(name: str) -> PublishedModel:
    table, where = _tables()[name]
    return from_table(name, table, where)


@cache
def _tables() -> dict[str, tuple[dict[str, Any], str]]:
    """Every model's table, a file's ``[defaults]`` filled in, and the file it stands in."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for stem, document in load("models").items():
        defaults = document.get("defaults", {})
        for name, table in document.items():
            if name == "defaults":
                continue
            if name in found:
                raise UsageError(f"models/{stem}.toml: {name} also stands in {found[name][1]}")
            found[name] = ({**defaults, **table}, f"models/{stem}.toml [{name}]")
    return found
