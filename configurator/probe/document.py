"""A probe's result as a document, its curve as a picture."""

from __future__ import annotations

from typing import Any

from configurator.probe.hook import LAYERS, ProbeResult
from configurator.render.curves import Panel, Series, panels_svg
from configurator.render.document import Document, Section, Table

__all__ = ["curve_svg", "document"]


def document(result: ProbeResult) -> Document:
    """For terminal, Markdown and HTML; no times, so that equal runs give equal text."""
    rows = tuple(_row(curve) for curve in result.curve)
    made = ", ".join(f"{name} {value}" for name, value in result.environment.items())
    return Document(
        title=f"Probe: {result.task}",
        answer=result.verdict[0].upper() + result.verdict[1:] + ".",
        asked=f"{result.task}: {result.task_about}",
        good=result.passed,
        sections=(
            Section(
                title="What was trained",
                facts=(
                    ("model", "attention only, norms before it, no feed-forward"),
                    ("geometry", result.shrunk),
                    ("asked for", f"{result.threshold:.0%} on held-out rows, every seed"),
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
            Section(title="How it was made", note=made, lead=f"seeds {_list(result.seeds)}"),
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
