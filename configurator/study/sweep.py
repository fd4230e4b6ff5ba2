"""Train every arm of a study with every seed, and keep what is finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from configurator.probe.checkpoint import Checkpoint, StopRequest
from configurator.probe.model import TinyModel, build
from configurator.probe.shrink import Geometry
from configurator.probe.train import Data, Progress, Recipe, Run, train

__all__ = ["Arm", "Effort", "Sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One model of a study: what is trained on what. Arms of a study differ in one thing."""

    name: str
    attention: Geometry
    layers: int
    data: Data
    vocab_size: int
    steps: int
    recipe: Recipe
    d_ff: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to try, where, and who is told.

    Args:
        seeds: one model is trained for each seed and arm.
        steps: training steps; None takes the study's own.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        resume: a checkpoint to go on from.
        keep: where a stopped run leaves its checkpoint.
        stop: asked between steps whether to stop.
        watch: told the live loss after every step.
        plan: told how many steps there will be in all, before the first.
    """

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    steps: int | None = None
    device: str = "auto"
    resume: Path | None = None
    keep: Path | None = None
    stop: StopRequest | None = None
    watch: Callable[[Progress], None] | None = None
    plan: Callable[[int], None] | None = None


@dataclass(slots=True, kw_only=True)
class Sweep:
    """The arms' runs, by name, and the model of the last seed of each."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    models: dict[str, TinyModel] = field(default_factory=dict)

    def train(
        self, arms: Sequence[Arm], effort: Effort, device: str, settings: dict[str, object]
    ) -> None:
        """Train them all; raises ``Stopped`` after ``effort.stop`` was requested."""
        settings = settings | {"steps": [arm.steps for arm in arms]}
        kept = (
            Checkpoint.resume(effort.resume, settings)
            if effort.resume
            else Checkpoint(effort.keep, settings)
        )
        if effort.plan is not None:
            effort.plan(len(effort.seeds) * sum(arm.steps for arm in arms))
        # Seeds outermost: whoever stops early has every arm once, which can be compared.
        for seed in effort.seeds:
            for arm in arms:
                done = self._one(arm, seed, effort, device, kept)
                self.runs.setdefault(arm.name, []).append(done)

    def _one(self, arm: Arm, seed: int, effort: Effort, device: str, kept: Checkpoint) -> Run:
        label = f"{arm.name}, seed {seed}"
        if label in kept.finished:
            return Run.from_dict(kept.finished[label])
        model = _build(arm, seed, device)
        run = train(
            model,
            arm.data,
            label=label,
            seed=seed,
            steps=arm.steps,
            recipe=arm.recipe,
            device=device,
            kept=kept,
            stop=effort.stop,
            watch=effort.watch,
        )
        kept.finish(label, run.to_dict())
        self.models[arm.name] = model
        return run

    def model(self, arm: Arm) -> TinyModel:
        """The arm's trained model; an untrained one where its runs came from a checkpoint.

        What is counted on it (weights, bytes, equality of two formulations) is the same for both.
        """
        return self.models.get(arm.name) or _build(arm, 0, "cpu")


def _build(arm: Arm, seed: int, device: str) -> TinyModel:
    return build(
        arm.attention,
        layers=arm.layers,
        vocab_size=arm.vocab_size,
        d_ff=arm.d_ff,
        seed=seed,
        device=device,
    )
