"""What a benchmark and a calibration say: the best of each case first, then every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from configurator.bench.calibrate import Calibration
from configurator.bench.clock import BUSY
from configurator.bench.sweep import winners
from configurator.core.units import format_bytes, format_seconds
from configurator.render.document import Document, Section, Table

__all__ = ["bench_document", "calibration_document"]

_BEST = ("Case", "Phase", "Use", "Cache bytes", "Predicted", "Measured", "Bandwidth")
_EACH = ("Formulation", "Path that ran", "Measured", "Spread", "GB/s", "Bandwidth", "Status")


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e9:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _bytes(row: Mapping[str, Any]) -> str:
    predicted, measured = row["cache_bytes_predicted"], row["cache_bytes_measured"]
    if measured is None:
        return f"{predicted:,} not measured"
    return f"{predicted:,} exact" if measured == predicted else f"{predicted:,}, is {measured:,}"


def _winner(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["case"],
        row["phase"],
        row["formulation"],
        _bytes(row),
        format_seconds(row["predicted_s"]),
        format_seconds(row["measured_s"]),
        _share(row["share_of_bandwidth"]),
    )


def _each(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["formulation"],
        row["path"],
        format_seconds(row["measured_s"]),
        format_seconds(row["spread_s"]),
        _rate(row["bytes_per_s"]),
        _share(row["share_of_bandwidth"]),
        row["status"],
    )


def _by_case(timed: Sequence[Mapping[str, Any]]) -> tuple[Section, ...]:
    """A section for every case and phase: what was tried, fastest first."""
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in timed:
        cases.setdefault((row["case"], row["phase"]), []).append(row)
    return tuple(
        Section(
            title=f"{case}, {phase}",
            table=Table(
                header=_EACH,
                rows=tuple(_each(r) for r in sorted(rows, key=lambda r: r["measured_s"])),
                right=(2, 3, 4, 5),
            ),
        )
        for (case, phase), rows in cases.items()
    )


def bench_document(found: Mapping[str, Any]) -> Document:
    """A benchmark's document in words."""
    rows = found["rows"]
    best = winners(rows)
    differ = [r for r in rows if r["status"] == "bytes differ"]
    others = [r for r in rows if r["status"] not in ("ok", "bytes differ", "disturbed")]
    cache = found.get("cache") or {}
    timed = [r for r in rows if r["measured_s"]]
    return Document(
        title="Micro-benchmark of attention",
        answer=_answer(best, differ, cache, bool(timed)),
        asked=str(found.get("asked", "")),
        good=not differ and cache.get("status") != "bytes differ",
        sections=(
            Section(
                title="Cache bytes that differ",
                tone="bad",
                points=tuple(f"{r['case']}: {_bytes(r)}" for r in differ),
            ),
            Section(
                title="The fastest formulation of each case",
                table=Table(header=_BEST, rows=tuple(map(_winner, best)), right=(4, 5, 6))
                if best
                else None,
                note="One layer's attention. Bandwidth is the share of what this machine read at "
                "best in the same run." if best else "",
            ),
            Section(title="Which to use", points=_use(best, timed)),
            Section(
                title="Not measured, or not to be trusted",
                tone="warning",
                points=tuple(f"{_named(r)}: {r['status']}" for r in others),
            ),
            Section(title="Said of single rows", points=_flags(timed)),
            *_by_case(timed),
            Section(title="This machine", facts=_machine(found["environment"])),
            Section(title="This answer again", code=str(found.get("command", ""))),
        ),
    )  # fmt: skip


def _named(row: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (row["case"], row["phase"], row["formulation"])))


def _answer(
    best: Sequence[Mapping[str, Any]],
    differ: Sequence[Any],
    cache: Mapping[str, Any],
    timed: bool,
) -> str:
    if differ or cache.get("status") == "bytes differ":
        return "Measured cache bytes differ from the prediction"
    exact = "Cache bytes exact"
    if cache.get("measured_bytes") is not None:
        exact += f"; the whole cache is {format_bytes(cache['predicted_bytes'])}"
    elif cache:
        exact = f"The whole cache of {format_bytes(cache['predicted_bytes'])} was not allocated"
    if not best:
        return f"{exact}. Nothing was timed{' undisturbed: other programs ran' * timed}"
    first = best[0]
    share = first["share_of_bandwidth"]
    at = f", {share:.0%} of the bandwidth" if share is not None else ""
    return (
        f"{exact}. {first['case']}: {format_seconds(first['measured_s'])} "
        f"({first['formulation']}{at}), predicted {format_seconds(first['predicted_s'])}"
    )


def _use(best: Sequence[Mapping[str, Any]], timed: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """For each case: what to call, and how much slower the plain call is."""
    said = []
    for winner in best:
        same = [
            r
            for r in timed
            if (r["case"], r["phase"]) == (winner["case"], winner["phase"]) and r["status"] == "ok"
        ]
        slowest = max(same, key=lambda r: r["measured_s"])
        factor = slowest["measured_s"] / winner["measured_s"]
        if factor > 1.5:
            said.append(
                f"{winner['case']}, {winner['phase']}: use {winner['formulation']}; "
                f"{slowest['formulation']} ({slowest['path']}) takes {factor:.1f} times as long"
            )
    return tuple(said)


def _flags(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    said: dict[str, list[str]] = {}
    for row in rows:
        for flag in row["flags"]:
            said.setdefault(flag.partition(":")[0] if flag.startswith(BUSY) else flag, []).append(
                f"{row['case']} {row['formulation']}"
            )
    return tuple(
        f"{flag}: {'; '.join(where[:3])}{f' and {len(where) - 3} more' if len(where) > 3 else ''}"
        for flag, where in said.items()
    )


def _machine(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    ceilings = environment.get("ceilings") or {}
    facts = [
        ("device", f"{environment.get('device_name')} ({environment.get('device')})"),
        ("cores, threads", f"{environment.get('cores')}, {environment.get('threads')}"),
        ("torch", str(environment.get("torch"))),
        ("python", str(environment.get("python"))),
        ("load when it ended", str(environment.get("load"))),
        ("priority", str(environment.get("priority") or "unknown")),
        ("predictions", str(environment.get("predictions") or "none")),
    ]
    if ceilings and not ceilings.get("calm", True):
        facts.append(("disturbed", "other programs ran while the ceilings were measured"))
    if ceilings:
        facts += [
            ("reads at best", f"{ceilings['read_bytes_per_s'] / 1e9:.1f} GB/s"),
            ("copies", f"{ceilings['copy_bytes_per_s'] / 1e9:.1f} GB/s"),
            *(
                (f"products in {kind}", f"{rate / 1e12:.2f} TFLOP/s")
                for kind, rate in ceilings["flops_per_s"].items()
            ),
        ]
    return tuple(facts)


def calibration_document(found: Calibration, where: str) -> Document:
    """A calibration in words: the rates, and predicted against measured on unseen points."""
    profile = found.profile
    rows = tuple(
        (
            c.case, c.phase, c.formulation, format_seconds(c.predicted_s),
            format_seconds(c.measured_s), format_seconds(c.spread_s),
            f"{c.predicted_s / c.measured_s:.2f}",
        )
        for c in found.checked
    )  # fmt: skip
    quality = ", ".join(
        f"{phase}: median error {found.error[phase]:.0%}, Kendall tau {found.tau[phase]:.2f}"
        for phase in found.error
    )
    facts = [
        ("reads at best", f"{profile.read_bytes_per_s / 1e9:.1f} GB/s"),
        ("copies", f"{profile.copy_bytes_per_s / 1e9:.1f} GB/s"),
        *(
            (f"products in {kind}", f"{rate / 1e12:.2f} TFLOP/s")
            for kind, rate in profile.flops_per_s.items()
        ),
        ("took", f"{found.seconds:.0f} s"),
    ]
    table = Table(
        header=("Case", "Phase", "Formulation", "Predicted", "Measured", "Spread", "Ratio"),
        rows=rows,
        right=(3, 4, 5, 6),
    )
    return Document(
        title="This machine, measured",
        answer=f"Kept in {where}" if where else "Measured; not kept",
        asked=f"{profile.device}: {profile.environment.get('device_name', '')}",
        sections=(
            Section(title="Rates", facts=tuple(facts)),
            Section(
                title="Predicted and measured, on points that were not fitted",
                lead=f"{len(rows)} points. {quality}." if rows else "",
                table=table if rows else None,
            ),
            Section(
                title="Fitted coefficients",
                facts=tuple((k, f"{v:.4g}") for k, v in sorted(profile.coefficients.items())),
            ),
            Section(title="Measured on", facts=_machine(profile.environment)),
        ),
    )
