"""A probe's result as a document, its curve as a picture."""

from __future__ import annotations

from typing import Any

from configurator.probe.hook import LAYERS, ProbeResult
from configurator.render.curves import Panel, Series, panels_svg
from configurator.render.document import Document, Section, Table

__all__ = ["curve_svg", "document"]


_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 24


def document(result: ProbeResult, command: str = "") -> Document:
    """For terminal, Markdown and HTML; no times, so that equal runs give equal text.

    ``command`` is what repeats it.
    """
    rows = tuple(_row(curve) for curve in result.curve)
    made = ", ".join(f"{name} {value}" for name, value in result.environment.items())
    return Document(
        title=f"Probe: {result.task}",
        answer=result.verdict[0].upper() + result.verdict[1:] + ".",
        asked=f"{result.task}: {result.task_about}",
        good=result.passed,
        sections=(
            Section(title="Warnings", points=result.warnings, tone="warning"),
            Section(
                title="What was trained",
                facts=(
                    ("model", "attention only, norms before it, no feed-forward"),
                    ("geometry", result.shrunk),
                    (
                        "asked for",
                        f"{result.threshold:.0%} on held-out rows, every seed, within "
                        f"{result.most_steps:,} steps",
                    ),
                ),
            ),
            Section(
                title="Runs",
                table=Table(
                    header=("Layers", "Seed", "Parameters", "Steps", "Held-out accuracy", "Loss"),
                    rows=rows,
                    right=(1, 2, 3, 4, 5),
                ),
                note=(
                    "Accuracy is that of rows which decided nothing; training stops a little above "
                    "the threshold, the one-layer control takes the whole budget of steps."
                ),
            ),
            Section(
                title="Accuracy by step",
                lead=_axis(result),
                code="\n".join(_drawn(curve, result) for curve in result.curve),
            ),
            Section(
                title="How it was made",
                lead=f"seeds {_list(result.seeds)}",
                note=made,
                code=command,
            ),
        ),
    )


def curve_svg(result: ProbeResult) -> str:
    """Accuracy and loss by step, every run; raises ``MissingExtra`` without matplotlib."""
    lines = [(result.threshold, f"{result.threshold:.0%}")]
    return panels_svg(
        [
            Panel(
                title="accuracy",
                x_label="training step",
                y_label="held-out accuracy",
                series=[_series(curve, "accuracy") for curve in result.curve],
                lines=lines,
            ),
            Panel(
                title="loss",
                x_label="training step",
                y_label="held-out loss, nats per scored token",
                series=[_series(curve, "loss") for curve in result.curve],
                log_y=True,
            ),
        ],
        title=f"{result.task}, {result.geometry['projection']}",
    )


def _edges(result: ProbeResult) -> list[int]:
    """Steps at which the bars of the longest run end."""
    steps: list[int] = max((curve["step"] for curve in result.curve), key=lambda s: s[-1])
    bars = min(_MOST_BARS, len(steps))
    return [steps[(i + 1) * len(steps) // bars - 1] for i in range(bars)]


def _axis(result: ProbeResult) -> str:
    edges = _edges(result)
    return (
        f"Held-out accuracy in bars of eight heights, from step {edges[0]:,} to step "
        f"{edges[-1]:,}; then the step that first had {result.threshold:.0%}."
    )


def _drawn(curve: dict[str, Any], result: ProbeResult) -> str:
    """A run in a line: its name, a bar for each stretch of steps, the step that reached enough."""
    points = list(zip(curve["step"], curve["accuracy"], strict=True))
    bars, before = "", 0
    for edge in _edges(result):
        seen = [accuracy for step, accuracy in points if before < step <= edge]
        bars += _BARS[min(7, int(8 * seen[-1]))] if seen else " "
        before = edge
    first = next((f"{step:,}" for step, accuracy in points if accuracy >= result.threshold), "-")
    return f"{_name(curve):<{max(len(_name(c)) for c in result.curve)}}  {bars}  {first:>6}"


def _series(curve: dict[str, Any], key: str) -> Series:
    return Series(
        label=_name(curve), x=curve["step"], y=curve[key], dashed=curve["layers"] != LAYERS
    )


def _name(curve: dict[str, Any]) -> str:
    return f"{_layers(curve)}, seed {curve['seed']}"


def _layers(curve: dict[str, Any]) -> str:
    return f"{curve['layers']} layers" if curve["layers"] == LAYERS else "1 layer (control)"


def _row(curve: dict[str, Any]) -> tuple[str, ...]:
    return (
        _layers(curve),
        str(curve["seed"]),
        f"{curve['params']:,}",
        f"{curve['step'][-1]:,}",
        f"{curve['final_accuracy']:.1%}",
        f"{curve['loss'][-1]:.3f}",
    )


def _list(seeds: tuple[int, ...]) -> str:
    return ", ".join(map(str, seeds))
