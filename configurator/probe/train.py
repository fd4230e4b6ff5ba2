"""The training loop of probe and studies: fresh rows each step, AdamW, a held-out score."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from configurator.core.errors import UsageError, one_line
from configurator.probe.checkpoint import Checkpoint, Stopped, StopRequest
from configurator.probe.model import TinyModel
from configurator.probe.task import IGNORE, Batch

__all__ = ["Data", "Point", "Progress", "Recipe", "Run", "evaluate", "train"]


class Data(Protocol):
    """Where rows come from: a task or a text."""

    def train_batch(self, seed: int, step: int, rows: int) -> Batch:
        """Rows of one step."""
        ...

    def held_out(self, seed: int, rows: int, *, final: bool = False) -> Batch:
        """Rows that training never sees; ``final`` ones do not decide when to stop either."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a small model is trained.

    Args:
        learning_rate: peak of AdamW's rate, held after the warm-up.
        warmup_steps: steps over which it rises from zero.
        rows: rows in a step.
        eval_every: steps between two held-out scores.
        held_out_rows: rows of such a score.
        stop_at: held-out accuracy at which training ends; above 1 it runs to the last step.
        decay: the rate falls linearly to a tenth of its peak over the run.
    """

    learning_rate: float = 3e-3
    warmup_steps: int = 50
    rows: int = 64
    eval_every: int = 25
    held_out_rows: int = 128
    stop_at: float = 2.0
    decay: bool = False

    def rate(self, step: int, steps: int) -> float:
        """Learning rate of step ``step``, counted from 0, of ``steps``."""
        rising = min(1.0, (step + 1) / self.warmup_steps)
        falling = 1.0 - 0.9 * step / steps if self.decay else 1.0
        return self.learning_rate * rising * falling


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a curve: mean training loss since the last one, and the held-out score.

    Losses are in nats per scored token.
    """

    step: int
    train_loss: float
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trained model. ``loss`` and ``accuracy`` are those of the final held-out rows."""

    label: str
    seed: int
    steps: int
    seconds: float
    loss: float
    accuracy: float
    params: int
    curve: tuple[Point, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON and checkpoints take them."""
        return asdict(self) | {"curve": [asdict(point) for point in self.curve]}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Run:
        """The inverse of :meth:`to_dict`; raises ``UsageError`` for anything else."""
        try:
            curve = tuple(_of_plain(Point, point) for point in kept["curve"])
            run = _of_plain(cls, {**kept, "curve": curve})
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"--resume: an entry of the checkpoint is malformed ({one_line(error)}); "
                "start a new file"
            ) from None
        if not curve:
            raise UsageError("--resume: a run of the checkpoint has no curve; start a new file")
        return run

    def first_step(self, accuracy: float) -> int | None:
        """The first step whose held-out accuracy is at least that, or None."""
        return next((p.step for p in self.curve if p.accuracy >= accuracy), None)


_Plain = TypeVar("_Plain")
_TYPES = {"str": str, "int": int, "float": int | float, "tuple[Point, ...]": tuple}


def _of_plain(kind: type[_Plain], kept: dict[str, Any]) -> _Plain:
    """The dataclass with these values; raises ``TypeError`` or ``ValueError`` where they are not.

    A loss may be NaN, as of a run that diverged; an accuracy is a share.
    """
    for field in fields(kind):  # type: ignore[arg-type]
        value = kept[field.name]
        if not isinstance(value, _TYPES[str(field.type)]) or isinstance(value, bool):
            raise TypeError(f"{field.name} is a {type(value).__name__}")
        if isinstance(value, int) and not 0 <= value < 2**63:
            raise ValueError(f"{field.name} is out of range")
    if not 0 <= kept["accuracy"] <= 1:
        raise ValueError("accuracy is no share")
    return kind(**kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a watcher is told after each step."""

    label: str
    step: int
    steps: int
    loss: float
    accuracy: float | None


def evaluate(model: TinyModel, batch: Batch, device: str) -> tuple[float, float]:
    """Held-out loss in nats per scored token, and the share of them that are right."""
    tokens_BS, labels_BS = _to_device(batch, device)
    right = scored = 0
    nats = 0.0
    model.eval()
    with torch.inference_mode():
        pairs = zip(torch.split(tokens_BS, 64), torch.split(labels_BS, 64), strict=True)
        for tokens, labels in pairs:
            logits_BSV = model(tokens)
            mask = labels != IGNORE
            nats += float(_loss(logits_BSV, labels, reduction="sum"))
            right += int((logits_BSV.argmax(-1) == labels)[mask].sum())
            scored += int(mask.sum())
    model.train()
    return nats / scored, right / scored


def train(
    model: TinyModel,
    data: Data,
    *,
    label: str,
    seed: int,
    steps: int,
    recipe: Recipe,
    device: str = "cpu",
    kept: Checkpoint | None = None,
    stop: StopRequest | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Run:
    """Train ``model`` for ``steps`` steps or until ``recipe.stop_at``, and score it.

    A step's rows and rate depend on seed and step number alone, so a run picked up from ``kept``
    ends with the weights that an uninterrupted one has. Raises :class:`Stopped` after a stop was
    requested, with the state kept.
    """
    kept = kept if kept is not None else Checkpoint(None, {})
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.01)
    step, points, losses, seconds = _pick_up(kept, label, model, optimizer, steps)
    began = time.perf_counter() - seconds
    checks = data.held_out(seed, recipe.held_out_rows)
    while step < steps and not (points and points[-1].accuracy >= recipe.stop_at):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step, steps)
        tokens_BS, labels_BS = _to_device(data.train_batch(seed, step, recipe.rows), device)
        loss = _loss(model(tokens_BS), labels_BS)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        losses.append(float(loss.detach()))
        if step % recipe.eval_every == 0 or step == steps:
            held_out_loss, accuracy = evaluate(model, checks, device)
            mean = sum(losses) / len(losses)
            points.append(Point(step=step, train_loss=mean, loss=held_out_loss, accuracy=accuracy))
            losses.clear()
        if watch is not None:
            watch(
                Progress(
                    label=label,
                    step=step,
                    steps=steps,
                    loss=float(loss.detach()),
                    accuracy=points[-1].accuracy if points else None,
                )
            )
        if stop is not None and stop.requested:
            kept.unfinished[label] = {
                "step": step,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "points": [asdict(point) for point in points],
                "losses": losses,
                "seconds": time.perf_counter() - began,
            }
            kept.write()
            raise Stopped(kept.path, label, step)
    final_loss, final_accuracy = evaluate(
        model, data.held_out(seed, 4 * recipe.held_out_rows, final=True), device
    )
    return Run(
        label=label,
        seed=seed,
        steps=step,
        seconds=time.perf_counter() - began,
        loss=final_loss,
        accuracy=final_accuracy,
        params=sum(p.numel() for p in model.parameters()),
        curve=tuple(points),
    )


def _pick_up(
    kept: Checkpoint,
    label: str,
    model: TinyModel,
    optimizer: torch.optim.Optimizer,
    steps: int,
) -> tuple[int, list[Point], list[float], float]:
    """Where the run stands: steps done, curve so far, losses since its last point, seconds."""
    state = kept.unfinished.get(label)
    if state is None:
        return 0, [], [], 0.0
    try:
        model.load_state_dict(state["model"])
        _load(optimizer, state["optimizer"]["state"])
        points = [_of_plain(Point, point) for point in state["points"]]
        step, losses, seconds = state["step"], [float(x) for x in state["losses"]], state["seconds"]
        if type(step) is not int or not 0 <= step <= steps or len(losses) > step:
            raise ValueError("step")
        return step, points, losses, float(seconds)
    except (RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"--resume {kept.path}: the state of {label} does not fit this model "
            f"({type(error).__name__}); start a new file"
        ) from None


def _load(optimizer: torch.optim.Optimizer, moments: dict[int, dict[str, Tensor]]) -> None:
    """AdamW's moments of every weight; rates and the like stay those of this run."""
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    for weight in groups[0]["params"]:
        held = optimizer.param_groups[0]["params"][weight]
        for name in ("exp_avg", "exp_avg_sq"):
            if optimizer.state[held][name].shape != held.shape:
                raise ValueError(name)
        optimizer.state[held]["step"].item()


def _loss(logits_BSV: Tensor, labels_BS: Tensor, reduction: str = "mean") -> Tensor:
    return cross_entropy(
        logits_BSV.flatten(0, 1).float(),
        labels_BS.flatten(),
        ignore_index=IGNORE,
        reduction=reduction,
    )


def _to_device(batch: Batch, device: str) -> tuple[Tensor, Tensor]:
    tokens, labels = batch
    return torch.from_numpy(tokens).to(device), torch.from_numpy(labels).to(device)
