"""What fewer key/value heads save and cost: MHA, GQA between, MQA, one width, one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

import torch

from configurator import __version__
from configurator.attention.cache import Cache
from configurator.attention.device import pick_device
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.units import format_bytes
from configurator.probe.device import environment
from configurator.probe.hook import recipe_for
from configurator.probe.model import TinyModel
from configurator.probe.task import task
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
from configurator.study.sweep import Arm, Effort, Sweep, untrained

__all__ = ["CONTEXT", "LAYERS", "attention_params", "cached", "study_mqa"]

N_HEADS, D_HEAD, LAYERS, CONTEXT = 8, 16, 2, 2048
_STEPS = 400


def study_mqa(
    effort: Effort,
    *,
    n_heads: int = N_HEADS,
    task_name: str = "induction",
    rows: int | None = None,
    count_at: int = CONTEXT,
) -> Study:
    """Train every number of KV heads on one task; count parameters and cache on what was built.

    Args:
        effort: seeds, steps, device, checkpoints.
        n_heads: query heads of width 16; every divisor of it is an arm.
        task_name: ``induction``, ``recall`` or ``copy``.
        rows: rows in a training step; those of the task by default.
        count_at: tokens in the cache whose bytes are counted.
    """
    if n_heads < 2:
        raise UsageError(f"n_heads is {n_heads}; sharing needs at least 2")
    device = pick_device(effort.device)
    data = task(task_name)
    rows = rows or data.rows
    mha = GroupedQuery(d_model=n_heads * D_HEAD, n_heads=n_heads, n_kv_heads=n_heads, d_head=D_HEAD)
    recipe = replace(
        recipe_for(mha, data), rows=rows, held_out_rows=128, eval_every=20, stop_at=2.0
    )
    arms = {
        kv: Arm(
            name=f"{_kind(n_heads, kv)}",
            attention=replace(mha, n_kv_heads=kv),
            layers=LAYERS,
            data=data,
            vocab_size=data.vocab_size,
            steps=effort.steps or _STEPS,
            recipe=recipe,
        )
        for kv in range(n_heads, 0, -1)
        if n_heads % kv == 0
    }
    sweep = Sweep()
    settings = {"study": "mqa", "n_heads": n_heads, "task": task_name, "rows": rows}
    sweep.train(list(arms.values()), effort, device, settings)
    losses = {kv: [mean_loss(run) for run in sweep.runs[arm.name]] for kv, arm in arms.items()}
    table = _rows(arms, sweep, losses, count_at)
    idle = nothing_learned(run for runs in sweep.runs.values() for run in runs)
    return Study(
        study="mqa",
        title=f"sharing keys and values among {n_heads} query heads",
        question="What do MQA and GQA save against MHA, and what do they cost on the same task?",
        answer=_answer(table, losses, task_name, count_at, idle),
        findings=_findings(table, losses, n_heads, idle),
        limits=(
            "Attention parameters saved are not given back to the feed-forward (there is none), "
            "so the arms with fewer KV heads are also the smaller models.",
            "One synthetic task cannot price sharing for a language model; published ablations "
            "find next to no loss down to a quarter of the cache and a small one for MQA (Ainslie "
            "et al. 2023; Brandon et al. 2024).",
        ),
        columns=(
            ("name", "Attention"), ("n_kv_heads", "KV heads"),
            ("params_attention", "Attention parameters"), ("params_saved", "Saved"),
            ("cache_bytes_fp16", f"Cache at {count_at}, bytes in fp16"),
            ("cache_share", "Of MHA's"), ("mean_loss", "Mean loss, nats"),
            ("final_loss", "Final loss, nats"), ("accuracy", "Final accuracy"),
        ),
        rows=tuple(table),
        panels=(
            Panel(
                title=f"{task_name}, {LAYERS} layers",
                x_label="training step",
                y_label="held-out loss, nats per scored token",
                series=[loss_band(arm.name, sweep.runs[arm.name]) for arm in arms.values()],
                log_y=True,
            ),
        ),
        runs=tuple(run for runs in sweep.runs.values() for run in runs),
        seeds=effort.seeds,
        settings={
            "width": n_heads * D_HEAD,
            "d_head": D_HEAD,
            "layers": LAYERS,
            "task": f"{task_name}: {data.about}",
            "steps": arms[1].steps,
            "training": f"AdamW, rate {recipe.learning_rate:.2g}, {rows} fresh rows a step",
            "cache": f"one sequence of {count_at} tokens, all {LAYERS} layers, filled by a forward",
        },
        environment=environment(device),
        command=effort.command("mqa", task=None if task_name == "induction" else task_name),
        version=__version__,
    )  # fmt: skip


def attention_params(model: TinyModel) -> int:
    """Weights of the attention of all layers, counted on the modules."""
    named = model.layers.named_parameters()
    return sum(weights.numel() for name, weights in named if ".attention." in name)


def cached(model: TinyModel, dtype: torch.dtype, context: int = CONTEXT) -> int:
    """Bytes of the caches that a forward over ``context`` tokens filled, over all layers."""
    device = str(model.embedding.weight.device)
    total = 0
    with torch.inference_mode():
        tokens_BS = torch.arange(context, device=device)[None] % model.embedding.num_embeddings
        x_BSD = model.embedding(tokens_BS)
        for layer in model.layers:
            geometry: Any = layer.attention.geometry  # type: ignore[union-attr]
            cache = Cache(geometry, batch=1, capacity=context, dtype=dtype, device=device)
            x_BSD = layer(x_BSD, cache=cache)
            if cache.length != context:
                raise RuntimeError(f"the cache holds {cache.length} of {context} tokens")
            total += cache.nbytes
    return total


def _kind(n_heads: int, kv: int) -> str:
    return "MHA" if kv == n_heads else "MQA" if kv == 1 else f"GQA-{kv}"


def _rows(
    arms: dict[int, Arm], sweep: Sweep, losses: dict[int, list[float]], count_at: int
) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    for kv, arm in arms.items():
        model, runs = untrained(arm), sweep.runs[arm.name]
        params, held = attention_params(model), cached(model, torch.float16, count_at)
        first = table[0] if table else {"params_attention": params, "cache_bytes_fp16": held}
        table.append(
            {
                "name": arm.name,
                "n_kv_heads": kv,
                "params_attention": params,
                "params_saved": first["params_attention"] - params,
                "params_saved_share": 1 - params / first["params_attention"],
                "cache_bytes_fp16": held,
                "cache_share": held / first["cache_bytes_fp16"],
                "mean_loss": asdict(spread(losses[kv])),
                "final_loss": asdict(spread([run.loss for run in runs])),
                "accuracy": asdict(spread([run.accuracy for run in runs])),
            }
        )
    return table


def _answer(
    table: Sequence[dict[str, Any]],
    losses: dict[int, list[float]],
    task_name: str,
    count_at: int,
    idle: str,
) -> str:
    mha, mqa = table[0], table[-1]
    gap = mqa["mean_loss"]["mean"] - mha["mean_loss"]["mean"]
    told = differ(losses[mha["n_kv_heads"]], losses[1])
    learning = {
        -1: f"learns {task_name} faster (mean loss {gap:+.3f} nats)",
        0: f"learns {task_name} no differently beyond noise (mean loss {gap:+.3f} nats)",
        1: f"learns {task_name} more slowly (mean loss {gap:+.3f} nats)",
    }[told]
    ends = (
        f"it {learning} and ends with {mqa['accuracy']['mean']:.1%} right (MHA "
        f"{mha['accuracy']['mean']:.1%})"
    )
    return (
        f"MQA saves {mqa['params_saved']:,} of {mha['params_attention']:,} attention parameters "
        f"({mqa['params_saved_share']:.0%}) and holds {mqa['cache_bytes_fp16']:,} bytes instead of "
        f"{mha['cache_bytes_fp16']:,} at {count_at:,} tokens, "
        f"{mha['cache_bytes_fp16'] / mqa['cache_bytes_fp16']:g} times less; {idle or ends}."
    )


def _findings(
    table: Sequence[dict[str, Any]], losses: dict[int, list[float]], n_heads: int, idle: str
) -> tuple[str, ...]:
    words = {-1: "below", 0: "not to be told from", 1: "above"}
    found = []
    for row in table[1:]:
        told = differ(losses[n_heads], losses[row["n_kv_heads"]])
        learned = (
            f"; mean loss {fmean(losses[row['n_kv_heads']]):.3f} +- "
            f"{deviation(losses[row['n_kv_heads']]):.3f} is {words[told]} MHA's "
            f"{fmean(losses[n_heads]):.3f} +- {deviation(losses[n_heads]):.3f} nats (mean and "
            "deviation over seeds)"
        )
        found.append(
            f"{row['name']}: {row['params_saved_share']:.0%} of the attention parameters and "
            f"{1 - row['cache_share']:.0%} of the cache saved "
            f"({format_bytes(table[0]['cache_bytes_fp16'])} to "
            f"{format_bytes(row['cache_bytes_fp16'])})" + ("" if idle else learned)
        )
    return tuple(found)
