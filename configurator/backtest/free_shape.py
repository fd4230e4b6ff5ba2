"""Width and depth from a budget alone, against published dense models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from configurator.backtest.population import Subject
from configurator.backtest.scores import SIZES
from configurator.question import Question
from configurator.schema import Request

__all__ = ["free_shape"]

_NEAR = 0.25


def free_shape(found: Sequence[Subject]) -> dict[str, Any]:
    """How often width and depth are both within 25 % of a dense model's, vocabulary given or not.

    The advisor knows parameters, context and target, and then the vocabulary and its tying too.
    A lab's width and depth count once; ``any`` counts a hit of any of the depths offered.
    """
    dense = [s for s in found if not s.model.is_moe]
    repeats = Counter(map(_key, dense))
    rows = [_row(s, 1.0 / repeats[_key(s)]) for s in dense]
    plain = [r for r in rows if r["plain"]]
    sizes = {
        name: _scores([r for r in plain if low <= r["params"] < high]) for name, low, high in SIZES
    }
    years = sorted({r["year"] for r in plain})
    return {
        "plain": _scores(plain),
        "all": _scores(rows),
        "plain_by_size": {name: s for name, s in sizes.items() if s["models"]},
        "plain_by_year": {str(y): _scores([r for r in plain if r["year"] == y]) for y in years},
        "models": rows,
    }


def _key(s: Subject) -> tuple[object, ...]:
    return (s.model.org, s.model.d_model, s.model.n_layers)


def _row(s: Subject, weight: float) -> dict[str, Any]:
    m = s.model
    budget = {k: v for k, v in s.request.items() if k not in ("d_model", "n_layers")}
    bare = _offered(budget)
    known = {"vocab_size": m.vocab_size or None, "tie_embeddings": m.tied}
    given = _offered({**budget, **known})

    def near(shape: tuple[int, int]) -> bool:
        wide = abs(shape[0] / m.d_model - 1.0) <= _NEAR
        return wide and abs(shape[1] / m.n_layers - 1.0) <= _NEAR

    return {
        "model": m.name,
        "year": m.year,
        "plain": m.plain,
        "weight": weight,
        "params": m.total_params,
        "published": [m.d_model, m.n_layers],
        "ours": list(bare[0]),
        "ours_with_vocabulary": list(given[0]),
        "near": near(bare[0]),
        "near_with_vocabulary": near(given[0]),
        "any_near": any(map(near, bare)),
        "any_near_with_vocabulary": any(map(near, given)),
    }


def _offered(budget: dict[str, Any]) -> list[tuple[int, int]]:
    """Width and depth of every frame for this budget, the preferred one first."""
    return [(f.d_model, f.n_layers) for f in Question(Request(**budget)).frames]


def _scores(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total = sum(r["weight"] for r in rows)
    names = ("near", "near_with_vocabulary", "any_near", "any_near_with_vocabulary")
    shares = {
        n: sum(r["weight"] * r[n] for r in rows) / total if total else math.nan for n in names
    }
    return {"models": len(rows), "shapes": total, **shares}
