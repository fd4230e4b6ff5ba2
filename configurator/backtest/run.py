"""One backtest from the list of models to its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from configurator import __version__
from configurator.backtest import scores
from configurator.backtest.compare import agreement, compared, geometry_of, thumb
from configurator.backtest.evidence import judged
from configurator.backtest.field import agreement_of_labs, says
from configurator.backtest.free_shape import free_shape
from configurator.backtest.population import SINCE, Subject, subjects
from configurator.budget import sparsity
from configurator.catalog.model_card import PublishedModel
from configurator.core.errors import UsageError, unknown
from configurator.runner import run_map

__all__ = ["Backtest", "backtest"]

_REFUSED = f"{UsageError.__name__}: "  # how a run's row begins the reason of a user's mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """Scores over four sets, and one row for each model.

    ``models`` hold the request, the published and the recommended geometry, where they agree,
    what differs in cache, decode time and expected loss, whom the evidence favours, and what
    other labs chose. ``asked`` is how many models there are; fewer rows mean a part of the run,
    or models whose request the advisor refused: ``refused`` holds those, with its reason.
    """

    since: int
    asked: int
    sets: dict[str, dict[str, Any]]
    by_year: dict[str, dict[str, dict[str, Any]]]
    by_size: dict[str, dict[str, dict[str, Any]]]
    free_shape: dict[str, Any]
    models: tuple[dict[str, Any], ...]
    refused: tuple[dict[str, str], ...] = ()
    version: str = __version__


def backtest(
    *,
    since: int = SINCE,
    on: str | None = None,
    shard: str | None = None,
    resume: str | None = None,
    budget_s: float | None = None,
    models: Sequence[str | PublishedModel] | None = None,
) -> Backtest:
    """Ask the advisor about every published decoder since ``since`` and compare.

    ``models`` are asked about instead: names of the catalog's, or models that it does not hold.
    The other arguments are those of :func:`configurator.runner.run_map`. Words on the field
    always come from the whole catalog.

    Raises ``UsageError`` where there is no such model, or a run's option is not understood.
    """
    every = subjects(since)
    wanted = every if models is None else _chosen(models, every, since)
    if not wanted:
        raise UsageError(f"no decoder with a known geometry since {since}; use an earlier year")
    items = [
        {"model": s.model.name, "request": s.request, "published": geometry_of(s.model)}
        for s in wanted
    ]
    done = run_map(compared, items, on=on, shard=shard, resume=resume, budget_s=budget_s)
    failed = [r for r in done if r["status"] == "failed"]
    refused = [r for r in failed if r["reason"].startswith(_REFUSED)]
    if len(failed) > len(refused) or len(refused) == len(done):
        first = next((r for r in failed if r not in refused), None) or failed[0]
        raise UsageError(f"backtest of {first['item']['model']} failed: {first['reason']}")
    reasons = {r["item"]["model"]: r["reason"].removeprefix(_REFUSED) for r in refused}
    known = {s.model.name: s for s in wanted}
    rows = [_row(known[r["item"]["model"]], r["row"]) for r in done if r["status"] == "ok"]
    background = [_about(s) for s in every]
    for row in rows:
        differs = not row["agrees"]["geometry"]
        latent = "MLA" in (row["ours"]["projection"], row["published"]["projection"])
        costs = row["costs"]
        row["evidence"] = (
            judged(costs["ours"], costs["published"], latent=latent) if differs else None
        )
        row["field"] = says(row, background) if differs else ""
    sets = {name: _set(rows, name, background) for name in scores.SETS}
    for row in rows:
        del row["without"]  # what is left of it stands in the sets
    return Backtest(
        since=since,
        asked=len(wanted),
        sets=sets,
        by_year={n: scores.by_year(scores.selected(rows, n)) for n in ("plain", "all")},
        by_size={n: scores.by_size(scores.selected(rows, n)) for n in ("plain", "all")},
        free_shape=free_shape([s for s in wanted if s.model.name not in reasons]),
        models=tuple(rows),
        refused=tuple({"model": name, "reason": why} for name, why in reasons.items()),
    )


def _chosen(
    models: Sequence[str | PublishedModel], every: Sequence[Subject], since: int
) -> list[Subject]:
    """Subjects by name out of ``every``, and subjects for models that are given as such."""
    known = {s.model.name: s for s in every}
    named = [m for m in models if isinstance(m, str)]
    for name in named:
        if name not in known:
            raise unknown("model", name, known, f"the backtest asks about decoders since {since}")
    others = [m for m in models if not isinstance(m, str)]
    return [known[name] for name in named] + subjects(since, others)


def _about(s: Subject) -> dict[str, Any]:
    """What is known of a model before anyone is asked."""

    m = s.model
    return {
        "model": m.name,
        "title": m.title,
        "org": m.org,
        "year": m.year,
        "kind": "mixture" if m.is_moe else "dense",
        "plain": m.plain,
        "weight": s.weight,
        "params": m.total_params,
        "d_model": m.d_model,
        "n_layers": m.n_layers,
        "sparsity": sparsity(m.total_params, m.n_layers, m.d_model),
        "request": s.request,
        "published": geometry_of(m),
    }


def _row(s: Subject, answer: dict[str, Any]) -> dict[str, Any]:
    about, baseline = _about(s), thumb(s.model.d_model)
    agrees = agreement(baseline, about["published"])
    return {**about, **answer, "thumb": baseline, "thumb_agrees": agrees}


def _set(
    rows: Sequence[dict[str, Any]], name: str, background: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    inside = scores.selected(rows, name)
    return {
        "title": scores.SETS[name][0],
        **scores.score(inside),
        "interval_over_labs": scores.intervals(inside),
        "principles": scores.without(inside),
        "evidence": scores.favours(inside),
        "field": agreement_of_labs(scores.selected(background, name)),
    }
