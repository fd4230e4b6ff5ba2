"""How many heads for a given width? One width, 1 to 16 heads, on copy and on induction.

Heads split the same width, so parameters and arithmetic stay equal: only the number of places
that a token can look at changes, and with it the width that each look has (d_head).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import pairwise
from statistics import fmean
from typing import Any

from configurator import __version__
from configurator.attention.device import pick_device
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.probe.device import environment
from configurator.probe.task import task
from configurator.probe.train import Recipe, Run
from configurator.render.curves import Panel
from configurator.study.bands import (
    deviation,
    differ,
    loss_band,
    mean_loss,
    nothing_learned,
    spread,
)
from configurator.study.result import Study
from configurator.study.sweep import Arm, Effort, Sweep

__all__ = ["D_MODEL", "HEADS", "judge", "late", "study_heads"]

D_MODEL = 64
HEADS = (1, 2, 4, 8, 16)
_TASKS = {"copy": (1, 300), "induction": (2, 400)}
"""Layers and steps by task: copy needs one layer; induction cannot be done with one."""

_REACHED = 0.95

Losses = dict[int, list[float]]


def study_heads(effort: Effort, *, heads: Sequence[int] = HEADS, rows: int = 32) -> Study:
    """Train every head count on both tasks and say what more heads do.

    Args:
        effort: seeds, steps (for each task), device, checkpoints.
        heads: head counts; each must divide 64.
        rows: rows in a training step.

    Raises ``UsageError`` for a head count that does not divide the width, or fewer than two.
    """
    if len(set(heads)) < 2:
        raise UsageError(f"heads {list(heads)}: one count has nothing to compare with; give two")
    wrong = [h for h in heads if h < 1 or D_MODEL % h or (D_MODEL // h) % 2]
    if wrong:
        raise UsageError(
            f"heads {wrong[0]} do not divide the width of {D_MODEL} into even head widths; "
            "1, 2, 4, 8, 16 and 32 do"
        )
    device = pick_device(effort.device)
    arms = {
        (name, n_heads): Arm(
            name=f"{name}, {n_heads} head{'s' * (n_heads > 1)}",
            attention=GroupedQuery(
                d_model=D_MODEL, n_heads=n_heads, n_kv_heads=n_heads, d_head=D_MODEL // n_heads
            ),
            layers=layers,
            data=task(name),
            vocab_size=task(name).vocab_size,
            steps=effort.steps or steps,
            recipe=Recipe(
                eval_every=10 if name == "copy" else 20, rows=rows, held_out_rows=4 * rows
            ),
        )
        for name, (layers, steps) in _TASKS.items()
        for n_heads in heads
    }
    settings: dict[str, Any] = {"study": "heads", "heads": list(heads), "rows": rows}
    sweep = Sweep()
    sweep.train(list(arms.values()), effort, device, settings)
    runs = {key: sweep.runs[arm.name] for key, arm in arms.items()}
    losses = {
        name: {h: [mean_loss(run) for run in runs[name, h]] for h in heads} for name in _TASKS
    }
    sentences = {
        name: _sentences({h: runs[name, h] for h in heads}, losses[name]) for name in _TASKS
    }
    return Study(
        study="heads",
        title=f"number of heads at a width of {D_MODEL}",
        question="Width fixed, does splitting it into more heads help, flatten or hurt?",
        answer=" ".join(f"{name.capitalize()}: {said[0]}" for name, said in sentences.items()),
        findings=tuple(
            f"{name}: {s}"
            for name, said in sentences.items()
            for s in said[1:]
        ),
        limits=(
            "Mean loss over the run is compared, not the final loss: arms that solve a task end "
            "alike however late they are, so this says how soon as well as how well.",
            "A width of 64 and tasks of one rule, for which one or two heads can be enough. "
            "Language models need several: there a single head and heads of 16 cost loss (Vaswani "
            "et al. 2017, table 3), and at some sizes heads of 32 do (Brandon et al. 2024).",
            "Position turns pairs of a head's values, so narrow heads also have fewer angles to "
            "tell positions by; this study does not separate the two.",
        ),
        columns=(
            ("task", "Task"), ("n_heads", "Heads"), ("d_head", "d_head"),
            ("params_attention", "Attention parameters"), ("mean_loss", "Mean loss, nats"),
            ("final_loss", "Final loss, nats"), ("accuracy", "Final accuracy"),
            ("steps_to_95", "Steps to 95 %"),
        ),
        rows=tuple(
            _row(name, h, runs[name, h], sweep, arms[name, h]) for name in _TASKS for h in heads
        ),
        panels=tuple(
            Panel(
                title=f"{name}, {layers} layer{'s' * (layers > 1)}",
                x_label="training step",
                y_label="held-out loss, nats per scored token",
                series=[loss_band(f"{h} x {D_MODEL // h}", runs[name, h]) for h in heads],
                log_y=True,
            )
            for name, (layers, _) in _TASKS.items()
        ),
        runs=tuple(run for found in runs.values() for run in found),
        seeds=effort.seeds,
        settings={
            "width": D_MODEL,
            "layers": [f"{layers} for {name}" for name, (layers, _) in _TASKS.items()],
            "tasks": [f"{name}: {task(name).about}" for name in _TASKS],
            "training": f"AdamW, rate {Recipe().learning_rate}, {rows} fresh rows a step",
            "steps": [f"{arms[name, heads[0]].steps} for {name}" for name in _TASKS],
        },
        environment=environment(device),
        command=effort.command("heads", heads=None if tuple(heads) == HEADS else tuple(heads)),
        version=__version__,
    )  # fmt: skip


def _sentences(runs: dict[int, list[Run]], losses: Losses) -> list[str]:
    """One task's answer and what stands behind it; a task that nothing learned has no more."""
    idle = nothing_learned(run for arm in runs.values() for run in arm)
    if idle:
        return [f"{idle}."]
    return [*judge(losses, [h for h, arm in runs.items() if _short(arm)]), _ends(runs), *late(runs)]


def _short(arm: Sequence[Run]) -> list[Run]:
    """The runs that did not get there where others of their arm did."""
    short = [run for run in arm if run.accuracy < _REACHED]
    return short if len(short) < len(arm) else []


def judge(losses: Losses, unsure: Collection[int] = ()) -> list[str]:
    """The answer in a sentence, then what each doubling does; from the losses alone.

    Args:
        losses: by number of heads, one mean loss a seed.
        unsure: head counts of which some seeds learned the task and some did not.
    """
    heads = sorted(losses)
    words = {-1: "helps", 0: "makes no difference beyond noise", 1: "hurts"}
    steps = [
        f"from {a} to {b} heads (d_head {D_MODEL // a} to {D_MODEL // b}) "
        f"{words[differ(losses[a], losses[b])]}: mean loss "
        f"{fmean(losses[a]):.3f} +- {deviation(losses[a]):.3f} to {fmean(losses[b]):.3f} +- "
        f"{deviation(losses[b]):.3f} nats (mean and deviation over seeds)"
        for a, b in pairwise(heads)
    ]
    return [_answer(losses, [h for h in heads if h not in unsure], sorted(unsure)), *steps]


def _answer(losses: Losses, heads: Sequence[int], unsure: Sequence[int]) -> str:
    """What more heads do, from the arms of which every seed tells the same."""
    if min(len(values) for values in losses.values()) < 2:
        return "one seed cannot tell a difference from noise; run at least two."
    if len(heads) < 2:
        return f"the seeds disagree with {_list(unsure)} heads; run more of them."
    best = min(heads, key=lambda h: fmean(losses[h]))
    equal = [h for h in heads if not differ(losses[best], losses[h])]
    few, most = min(equal), max(equal)
    text = f"more heads help up to {few} (d_head {D_MODEL // few})"
    if few == heads[0]:
        text = "no gain from more heads is seen"
    if len(equal) > 1:
        text += (
            f"; from {few} to {most} (d_head {D_MODEL // few} to {D_MODEL // most}) the curve is "
            f"flat, lowest with {best}"
        )
    worse = [h for h in heads if few < h < most and h not in equal]
    if worse:
        text += f", but {_list(worse)} in between came out worse, which is not explained here"
    many = [h for h in heads if h > most]
    sure = [h for h in many if all(differ(losses[e], losses[h]) for e in equal)]
    between = [h for h in many if h not in sure]
    if between:
        text += f"; {_list(between)} may be either: worse than {best} heads, not than all of those"
    if unsure:
        text += f"; with {_list(unsure)} the seeds disagree"
    if sure:
        return (
            f"{text}; from {sure[0]} on (d_head {D_MODEL // sure[0]} and below) they hurt: they "
            "learn later."
        )
    return f"{text}; none tried hurts."


def _ends(runs: dict[int, list[Run]]) -> str:
    """Who ends lowest, which need not be who learns soonest."""
    losses = {h: [run.loss for run in found] for h, found in runs.items()}
    best = min(losses, key=lambda h: fmean(losses[h]))
    equal = [h for h in losses if h != best and not differ(losses[best], losses[h])]
    also = f"; {_list(equal)} not to be told from it" if equal else ""
    return f"lowest final loss with {best} ({fmean(losses[best]):.2g} nats){also}"


def late(runs: dict[int, list[Run]]) -> list[str]:
    """Seeds that did not get there although others of their arm did."""
    found = []
    for h, arm in runs.items():
        short = _short(arm)
        if short:
            each = ", ".join(f"{run.accuracy:.1%} with seed {run.seed}" for run in short)
            found.append(
                f"with {h} head{'s' * (h > 1)}, {len(short)} of {len(arm)} seeds had not learned "
                f"it by the last step ({each}): its mean says little"
            )
    return found


def _list(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))


def _row(name: str, n_heads: int, runs: Sequence[Run], sweep: Sweep, arm: Arm) -> dict[str, Any]:
    reached = [run.first_step(_REACHED) for run in runs]
    known = [step for step in reached if step is not None]
    return {
        "task": name,
        "n_heads": n_heads,
        "d_head": D_MODEL // n_heads,
        "params_attention": arm.attention.params(),
        "mean_loss": asdict(spread([mean_loss(run) for run in runs])),
        "final_loss": asdict(spread([run.loss for run in runs])),
        "accuracy": asdict(spread([run.accuracy for run in runs])),
        "steps_to_95": _reached(known, len(reached)),
        "seeds_at_95": len(known),
    }


def _reached(steps: Sequence[int], seeds: int) -> dict[str, float] | str | None:
    """The steps of all seeds, how many of them got there, or None for none."""
    if not steps:
        return None
    return asdict(spread(steps)) if len(steps) == seeds else f"{len(steps)} of {seeds} seeds"
