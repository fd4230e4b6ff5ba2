"""Train every arm of a study with every seed, and keep what is finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from configurator.probe.checkpoint import Checkpoint, StopRequest
from configurator.probe.model import TinyModel, build
from configurator.probe.shrink import Geometry
from configurator.probe.train import Data, Progress, Recipe, Run, train
from configurator.repeat import repeated

__all__ = ["Arm", "Effort", "Sweep", "untrained"]


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

    def command(self, study: str, **options: object) -> str:
        """What runs ``study`` again: its options that are not None, and whatever was asked here.

        >>> Effort(seeds=(7,), steps=90).command("mqa", task="recall", corpus=None)
        'mha-configurator study mqa --task recall --steps 90 --seeds 7,'
        """
        asked = options | {
            "steps": self.steps,
            "seeds": None if self.seeds == Effort().seeds else self._seeds(),
            "device": None if self.device == "auto" else self.device,
        }
        return repeated(f"study {study}", asked)

    def _seeds(self) -> tuple[object, ...]:
        """The seeds as the command line reads them; one number alone would be a count."""
        return self.seeds if len(self.seeds) > 1 else (*self.seeds, "")


@dataclass(slots=True, kw_only=True)
class Sweep:
    """The arms' runs, by name."""

    runs: dict[str, list[Run]] = field(default_factory=dict)

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
            effort.plan(
                sum(
                    kept.steps_left(_label(arm, seed), arm.steps)
                    for seed in effort.seeds
                    for arm in arms
                )
            )
        # Seeds outermost: whoever stops early has every arm once, which can be compared.
        for seed in effort.seeds:
            for arm in arms:
                done = self._one(arm, seed, effort, device, kept)
                self.runs.setdefault(arm.name, []).append(done)

    def _one(self, arm: Arm, seed: int, effort: Effort, device: str, kept: Checkpoint) -> Run:
        label = _label(arm, seed)
        if label in kept.finished:
            return Run.from_dict(kept.finished[label])
        model = untrained(arm, seed, device)
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
        return run


def _label(arm: Arm, seed: int) -> str:
    return f"{arm.name}, seed {seed}"


def untrained(arm: Arm, seed: int = 0, device: str = "cpu") -> TinyModel:
    """The arm's model as initialized, for what is counted on it: weights, bytes, formulations."""
    return build(
        arm.attention,
        layers=arm.layers,
        vocab_size=arm.vocab_size,
        d_ff=arm.d_ff,
        seed=seed,
        device=device,
    )
