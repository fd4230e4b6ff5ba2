"""One request on its way to a report: the frames, the grid, the order of its rows, the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from configurator import __version__
from configurator.assemble import label, option, recommendation, rule_reports
from configurator.budget import Frame, frames, lower_ranks
from configurator.catalog import published
from configurator.core.case import Case, Device, Workload
from configurator.core.cost import params_total
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.initialization import initialization
from configurator.core.kinds import Attention
from configurator.core.report import Option, Report, TrainingReport
from configurator.core.units import format_bytes
from configurator.explain import reason, test_hook, why, why_not
from configurator.front import pareto
from configurator.rank import decide, order, principles
from configurator.remedies import remedies
from configurator.repeat import command, echo
from configurator.schema import GeometryRequest, Request
from configurator.search import PROJECTIONS, Grid, Table, grid, only, shape_of, tabulate
from configurator.sensitivity import sensitivity
from configurator.target import describe, resolve
from configurator.training import training_report
from configurator.unhonoured import nothing_possible, unhonoured

__all__ = ["Question", "on_front", "workload_of"]

_LATENT_FROM = 4_000_000_000  # below it the list of five names MQA instead of MLA
_PRECEDENTS = 4
_LATENT_LEAST = 1_000_000_000  # the guardrail: no MLA below it, unless benchmarking


class Question:
    """One request on its way: the frames, the grid and the order of its rows."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.warnings: list[str] = []
        self.device = resolve(
            request.target,
            memory=request.memory,
            bandwidth=request.bandwidth,
            tflops=request.tflops,
        )
        self.workload = workload_of(request, self.device, self.warnings)
        self.frames = frames(
            params=request.params,
            active_params=request.active_params,
            d_model=request.d_model,
            n_layers=request.n_layers,
            vocab_size=request.vocab_size,
            tied=request.tie_embeddings,
            arch=request.arch,
            tensor_parallel=int(self.workload.tensor_parallel),
            d_head=self._head_width(),
        )
        self.warnings += self.frames[0].notes
        self.asked = self._projections()

    def _head_width(self) -> int | None:
        """What a width of the advisor's choice must be a multiple of; GQA shares an even number."""
        asked, only_shared = self.request.d_head or (), self.request.projection == ("gqa",)
        if self.request.allow_decoupled_heads or not (asked or only_shared):
            return None
        width = next((w for w in (64, 128) if w in asked), min(asked, default=64))
        return 2 * width if only_shared else width

    def _projections(self) -> tuple[str, ...]:
        """The projections to choose from; MLA below 1B parameters only when benchmarking."""
        request = self.request
        asked = tuple(p.upper() for p in request.projection or ()) or PROJECTIONS
        if request.params >= _LATENT_LEAST or request.benchmarking or "MLA" not in asked:
            return asked
        if request.projection:
            self.warnings.append(
                f"MLA was asked for and is not proposed: {request.params:,} parameters are below "
                f"{_LATENT_LEAST:,}, where its evidence conflicts; add --benchmarking to try it"
            )
        return tuple(p for p in asked if p != "MLA") or tuple(p for p in PROJECTIONS if p != "MLA")

    def around(self, frame: Frame, attention: Attention) -> Case:
        """The frame's model around another attention; the feed-forward takes what that frees."""
        shape = shape_of(
            frame,
            attention,
            source_len=int(self.workload.source_len),
            window=self.request.window or 0,
            full_every=self.request.full_every or 0,
        )
        return Case(shape=shape, workload=self.workload, device=self.device)

    def grids(self, frame: Frame) -> tuple[Grid, ...]:
        """The candidates inside one frame; raises ``UsageError`` where the request allows none."""
        request = self.request
        found = grid(
            frame,
            workload=self.workload,
            device=self.device,
            d_heads=request.d_head or (64, 128),
            window=request.window or 0,
            full_every=request.full_every or 0,
        )
        if not found:
            raise UsageError(nothing_possible(request, frame))
        return found

    def answer(self) -> Report:
        """Search, rank and explain."""
        request, frame = self.request, self.frames[0]
        wish = principles(frame, self.workload, self.device)
        grids = self.grids(frame)
        table, ranked = self.ranked(grids, frame)
        case = table.case(ranked[0])
        front = on_front(table)
        chosen = option(case, on_front=bool(front[ranked[0]]))
        others = self._alternatives(table, ranked, front, case, chosen)
        rules = rule_reports(case)
        fits = chosen.cache.fits is not False
        self.warnings += unhonoured(request, case.shape, self.asked, self.device)
        around = partial(self.around, frame)
        return Report(
            request=echo(request, self.workload),
            recommendation=recommendation(case, reason(case)),
            cache=chosen.cache,
            memory=chosen.memory,
            latency=chosen.latency,
            sensitivity=sensitivity(table, frame, self.workload, self.device, self.asked),
            quality=chosen.quality,
            initialization=initialization(case),
            test_hook=test_hook(case),
            alternatives=others,
            rules=rules,
            precedents=tuple(published.neighbours(case, _PRECEDENTS)),
            measurements=(),
            warnings=tuple(self.warnings),
            why=why(wish, chosen, _runner_up(table, ranked), case, self.asked, around),
            target=describe(self.device),
            fits=fits,
            remedies=() if fits else (*remedies(case, around), *_another(table, ranked)),
            command=command("recommend", request),
            version=__version__,
            training=self._training(table, case, frame),
        )

    def _training(self, table: Table, case: Case, frame: Frame) -> TrainingReport | None:
        """The costs of training, where that is the priority, and what it trades."""
        if self.workload.priority != "training":
            return None
        usual = replace(self.workload, priority="balanced")
        best = decide(only(table, self.asked), principles(frame, usual, self.device))
        return training_report(case, table.case(best))

    def ranked(self, grids: Sequence[Grid], frame: Frame) -> tuple[Table, list[int]]:
        """All candidates inside a frame with their costs, and their rows, best first."""
        table = tabulate(grids)
        wish = principles(frame, self.workload, self.device)
        ranked = [int(i) for i in order(only(table, self.asked), wish)]
        if self._latent_falls_short(table, ranked[0]):
            ranked = [int(i) for i in order(only(table, self.asked), wish)]
        if PROJECTIONS[int(table.projection[ranked[0]])] not in self.asked:
            raise UsageError(nothing_possible(self.request, frame))
        if not table.admissible[ranked[0]]:
            self._check_width(table.case(ranked[0]), frame)
            self.warnings.append(
                "no geometry of this shape passes every rule; the nearest one is shown with the "
                "rules it breaks"
            )
        return table, ranked

    def _latent_falls_short(self, table: Table, best: int) -> bool:
        """Drop MLA where a budget of a billion comes out just below it: no option silences that."""
        if PROJECTIONS[int(table.projection[best])] != "MLA" or self.request.benchmarking:
            return False
        total = params_total(table.case(best).shape)
        if total >= _LATENT_LEAST:
            return False
        self.warnings.append(
            f"MLA was asked for and is not proposed: the shape nearest to the budget has "
            f"{total:,} parameters, below {_LATENT_LEAST:,}, where its evidence conflicts; raise "
            "--params, or add --benchmarking"
        )
        others = [p for p in self.asked if p != "MLA"]
        self.asked = tuple(others or (p for p in PROJECTIONS if p != "MLA"))
        return True

    def _check_width(self, case: Case, frame: Frame) -> None:
        """Refuse a budget that no feed-forward meets at this width and depth."""
        feed_forward = case.shape.feed_forward
        if feed_forward is not None and feed_forward.d_ff > 0:
            return
        shape = f"d-model {frame.d_model} and {frame.n_layers} layers"
        remedy = lower_ranks(self.request.d_model, int(self.workload.tensor_parallel))
        if frame.active_params:
            raise UsageError(
                f"no mixture of experts has {frame.params:,} parameters with "
                f"{frame.active_params:,} active at {shape}; bring the two closer together, or "
                f"change --d-model or --n-layers{remedy}"
            )
        raise UsageError(
            f"params {frame.params:,} leave no room for a feed-forward beside the attention at "
            f"{shape}; raise --params, or lower --d-model or --n-layers{remedy}"
        )

    def shortlist(self, table: Table, ranked: list[int], front: np.ndarray) -> list[int]:
        """Alternatives: GQA-8, GQA-4, GQA-2, MHA, MLA (MQA below 4B), then the front's others."""
        picked: list[int] = []
        width = table.d_head[ranked[0]]
        kinds: list[tuple[str, int]] = [("GQA", 8), ("GQA", 4), ("GQA", 2), ("MHA", 0)]
        small = self.request.params < _LATENT_FROM
        kinds += [("MQA", 1), ("MLA", 0)] if small else [("MLA", 0), ("MQA", 1)]

        def matches(i: int, kind: str, kv: int) -> bool:
            same = PROJECTIONS[int(table.projection[i])] == kind
            return same and (kv == 0 or int(table.n_kv_heads[i]) == kv)

        for kind, kv in kinds:
            rows = [i for i in ranked[1:] if table.admissible[i] and matches(i, kind, kv)]
            rows.sort(key=lambda i: (table.d_head[i] != width, ranked.index(i)))
            if rows and not matches(ranked[0], kind, kv):
                picked.append(rows[0])
        rest = [i for i in ranked[1:] if table.admissible[i] and i not in picked]
        picked += [i for i in rest if front[i]] + [i for i in rest if not front[i]]
        return picked[: max(0, self.request.top)]

    def _alternatives(
        self, table: Table, ranked: list[int], front: Any, case: Case, chosen: Option
    ) -> tuple[Option, ...]:
        """The shortlist with its costs, then the usual heads at another depth."""
        found = []
        for i in self.shortlist(table, ranked, front):
            other = option(table.case(i), on_front=bool(front[i]))
            found.append(replace(other, why_not=why_not(other, chosen, case)))
        return tuple(found) + self._depths(case, chosen)

    def _depths(self, case: Case, chosen: Option) -> tuple[Option, ...]:
        """The same heads at another depth: where published models differ most."""
        found = []
        for frame in self.frames[1:2]:
            wish = principles(frame, self.workload, self.device)
            table = only(tabulate(self.grids(frame)), self.asked)
            i = int(order(table, wish)[0])
            if not table.admissible[i]:
                continue
            other = option(table.case(i), name=f"{frame.label}: {label(table.case(i))}")
            text = (
                f"{frame.n_layers} layers of {frame.d_model} instead of "
                f"{chosen.recommendation.n_layers} of {chosen.recommendation.d_model}; loss hardly "
                "depends on it, published models differ most here; "
            )
            found.append(replace(other, why_not=text + why_not(other, chosen, case)))
        return tuple(found)


def _runner_up(table: Table, ranked: list[int]) -> Option | None:
    """The second of the order that fits, or the second where nothing else does."""
    others = [i for i in ranked[1:] if table.admissible[i]]
    best = next((i for i in others if table.fits[i]), others[0] if others else None)
    return None if best is None else option(table.case(best))


def _another(table: Table, ranked: list[int]) -> tuple[str, ...]:
    """The best geometry that fits as it is, where the preferred one needs lighter weights."""
    fitting = [i for i in ranked if table.admissible[i] and table.fits[i]]
    if not fitting:
        return ()
    other = option(table.case(fitting[0]))
    loss = f"+{other.quality.penalty_nats:.3f} +- {other.quality.error_nats:.3f} nats"
    return (
        f"{other.label} fits as it is, with {format_bytes(other.cache.bytes_total)} of cache and "
        f"an expected loss of {loss} (--priority memory takes such a geometry)",
    )


def on_front(table: Table) -> np.ndarray:
    """Rows that nothing beats in cache, decode time and expected loss, closer values taken as one.

    Times within 5 % and losses within 0.002 nats count as equal: far inside both errors, but
    enough that a rounding of the model throws nobody off the front.
    """
    with np.errstate(divide="ignore"):
        time = np.round(np.log(table.decode_s) / np.log(1.05))
    loss = np.round(table.expected_nats / 0.002)
    return pareto(table.cache_bytes, time, loss, among=table.admissible)


def workload_of(
    request: Request | GeometryRequest, device: Device | None, warnings: list[str]
) -> Workload:
    """The work a request asks for; what was assumed goes to ``warnings``.

    Raises ``UsageError`` for a tensor parallelism that the target's devices cannot do.
    """
    count = device.count if device else 1
    ranks = request.tensor_parallel or count
    if device is None and ranks > 1:
        raise UsageError(
            f"tensor-parallel {ranks} needs a target of {ranks} devices; name one, such as "
            f"--target {ranks}xh100-sxm, or leave --tensor-parallel out"
        )
    if device is not None:
        device.check_ranks(ranks)
    source = request.source_len
    if request.arch == "encoder-decoder" and source is None:
        source = request.context
        warnings.append(f"source length taken as the context, {source:,} tokens")
    if request.kv_dtype == "fp8" and device is not None and not device.flops_per_s.get("fp8"):
        warnings.append(f"{device.name} has no fp8 arithmetic: an fp8 cache is converted when read")
    return Workload(
        context=request.context,
        batch=request.batch,
        weight_dtype=request.weight_dtype,
        kv=cache_type(request.kv_dtype),
        tensor_parallel=ranks,
        page_size=request.page_size,
        source_len=source or 0,
        priority=request.priority,
        benchmarking=request.benchmarking,
        allow_decoupled=request.allow_decoupled_heads,
    )
