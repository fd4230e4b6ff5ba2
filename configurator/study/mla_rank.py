"""How small may MLA's latent be? Byte-level language models on real text, rank by rank.

The cache of a layer is the latent and one rotary key a token, ``r + d_rope`` values, against
``2 * n_heads * d_head`` for MHA. The study asks at which rank that is under an eighth, at which
rank the loss stays near MHA's, and whether the two meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import Any

import torch

from configurator import __version__
from configurator.attention.device import pick_device
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.probe.device import environment
from configurator.probe.train import Recipe, Run
from configurator.render.curves import Panel, Series
from configurator.study.absorption import absorption, equal_ways
from configurator.study.bands import error, loss_band, spread
from configurator.study.corpus import SHORTEST_LINE, VOCAB_SIZE, pair_bits, read_corpus
from configurator.study.mla_answer import (
    BOUNDS_BITS,
    D_HEAD,
    D_ROPE,
    N_HEADS,
    SHARE,
    answer,
    findings,
    largest_rank_under,
)
from configurator.study.mqa import attention_params, cached
from configurator.study.result import Study
from configurator.study.sweep import Arm, Effort, Sweep, untrained

__all__ = ["ranks", "study_mla_rank"]

LAYERS, D_FF = 2, 256
CONTEXT, COUNT_AT = 128, 2048
_STEPS = 500
_LN2 = log(2)


def ranks() -> tuple[int, ...]:
    """The ranks of the sweep: powers of two from 1 to the model's width, and the last under 1/8."""
    powers = [2**i for i in range((N_HEADS * D_HEAD).bit_length())]
    return tuple(sorted({*powers, largest_rank_under(SHARE)}))


def study_mla_rank(
    effort: Effort,
    *,
    corpus: Path | None = None,
    sweep_ranks: Sequence[int] | None = None,
    rows: int = 16,
    count_at: int = COUNT_AT,
) -> Study:
    """Train MHA and MLA of each rank on one text and put loss and cache side by side.

    Args:
        effort: seeds, steps, device, checkpoints.
        corpus: a text of one's own; Python's language reference by default.
        sweep_ranks: ranks to try.
        rows: windows of 128 bytes in a training step.
        count_at: tokens in the cache whose bytes are counted.

    Raises ``UsageError`` for a text that cannot be read or is too short, or an impossible rank.
    """
    chosen = tuple(ranks() if sweep_ranks is None else sorted(set(sweep_ranks)))
    if not chosen or chosen[0] < 1:
        raise UsageError(f"ranks {list(chosen)}: give at least one, each at least 1")
    device = pick_device(effort.device)
    data = read_corpus(corpus, context=CONTEXT)
    recipe = Recipe(
        learning_rate=2e-3, rows=rows, eval_every=25, held_out_rows=6 * rows, decay=True,
    )  # fmt: skip
    arms = {
        rank: Arm(
            name=f"MLA, rank {rank}" if rank else "MHA",
            attention=_latent(rank) if rank else _mha(),
            layers=LAYERS,
            data=data,
            vocab_size=VOCAB_SIZE,
            steps=effort.steps or _STEPS,
            recipe=recipe,
            d_ff=D_FF,
        )
        for rank in (0, *chosen)
    }
    settings = {
        "study": "mla-rank", "ranks": list(chosen), "rows": rows, "corpus_sha256": data.sha256,
    }  # fmt: skip
    sweep = Sweep()
    sweep.train(list(arms.values()), effort, device, settings)
    pairs = pair_bits(data)
    table = [_row(rank, arm, sweep, count_at) for rank, arm in arms.items()]
    return Study(
        study="mla-rank",
        title="rank of MLA's latent against loss and cache",
        question=(
            "At which rank is MLA's cache under 1/8 of MHA's, at which does its loss stay near "
            "MHA's, and do the two meet?"
        ),
        answer=answer(table, pairs),
        findings=(
            *findings(table, pairs),
            *absorption(_latent(largest_rank_under(SHARE)), context=count_at),
            equal_ways(untrained(arms[chosen[-1]])),
        ),
        limits=(
            "Two layers and a short training on one small text: the bits are this model's own, and "
            "neighbouring ranks whose brackets overlap are not told apart.",
            "A context of 128 bytes does not ask for much memory; long contexts may want more "
            "rank. Tokens are bytes here, so bits per token and bits per byte are the same figure.",
            "The latent is normalized before it is expanded, as in DeepSeek-V2: at rank 1 only its "
            "sign is left.",
            f"MLA's arms keep a rotary key of {D_ROPE} beside {D_HEAD}-wide heads and differ from "
            "MHA in parameters too; the table counts them.",
        ),
        columns=(
            ("name", "Attention"), ("cache_elements", "Cached values, token and layer"),
            ("of_which_rotary", "Of which rotary"),
            ("cache_bytes_fp16", f"Cache at {count_at}, both layers, bytes in fp16"),
            ("cache_share", "Of MHA's"), ("params_attention", "Attention parameters"),
            ("bits_per_byte", "Bits per byte, held out"), ("perplexity", "Perplexity per byte"),
            ("bits_over_mha", "Bits over MHA"),
        ),
        rows=tuple(table),
        panels=_panels(table, sweep, arms),
        runs=tuple(run for runs in sweep.runs.values() for run in runs),
        seeds=effort.seeds,
        settings={
            "text": f"{data.name}, sha256 {data.sha256[:16]}",
            "split": (
                f"{len(data.train):,} bytes to train, {len(data.checks):,} for curves, "
                f"{len(data.final):,} for the figures; of the held-out lines of "
                f"{SHORTEST_LINE} bytes and more, {data.repeated_share:.1%} by bytes also stand in "
                "the training part"
            ),
            "model": (
                f"{LAYERS} layers, width {N_HEADS * D_HEAD}, {N_HEADS} heads of {D_HEAD}, "
                f"feed-forward {D_FF}, bytes as tokens, windows of {CONTEXT}"
            ),
            "training": (
                f"AdamW, rate {recipe.learning_rate} falling to a tenth, {rows} windows a step"
            ),
            "steps": arms[0].steps,
        },
        environment=environment(device),
        command=effort.command(
            "mla-rank", corpus=corpus, ranks=None if chosen == ranks() else chosen
        ),
        version=__version__,
    )  # fmt: skip


def _mha() -> GroupedQuery:
    return GroupedQuery(
        d_model=N_HEADS * D_HEAD, n_heads=N_HEADS, n_kv_heads=N_HEADS, d_head=D_HEAD
    )


def _latent(rank: int) -> Latent:
    return Latent(
        d_model=N_HEADS * D_HEAD,
        n_heads=N_HEADS,
        kv_lora_rank=rank,
        qk_nope_head_dim=D_HEAD,
        qk_rope_head_dim=D_ROPE,
        v_head_dim=D_HEAD,
    )


def _bits(runs: Sequence[Run]) -> list[float]:
    return [run.loss / _LN2 for run in runs]


def _row(rank: int, arm: Arm, sweep: Sweep, count_at: int) -> dict[str, Any]:
    """One arm: its cache counted from tensors, its parameters from modules, its loss by seed."""
    mha_bits, bits = _bits(sweep.runs["MHA"]), _bits(sweep.runs[arm.name])
    mha, elements = int(_mha().cache_elements()), int(arm.attention.cache_elements())
    model = untrained(arm)
    # Same seed, same rows: the pairs' differences scatter less than the losses do.
    over = [b - m for b, m in zip(bits, mha_bits, strict=True)]
    return {
        "name": arm.name,
        "kv_lora_rank": rank,
        "cache_elements": elements,
        "of_which_rotary": D_ROPE if rank else 0,
        "cache_bytes_fp16": cached(model, torch.float16, count_at),
        "cache_share": elements / mha,
        "params_attention": attention_params(model),
        "bits_per_byte": asdict(spread(bits)),
        "bits_per_token": asdict(spread(bits)),
        "perplexity": asdict(spread([2**b for b in bits])),
        "bits_over_mha": asdict(spread(over)),
        "bits_over_mha_error": error(over),
    }


def _panels(
    table: Sequence[dict[str, Any]], sweep: Sweep, arms: dict[int, Arm]
) -> tuple[Panel, ...]:
    latent = table[1:]
    tried = [row["kv_lora_rank"] for row in latent]
    over = {k: [row["bits_over_mha"][k] for row in latent] for k in ("mean", "low", "high")}
    return (
        Panel(
            title="loss over MHA's",
            x_label="rank of the latent",
            y_label="bits per byte over MHA",
            series=[
                Series(
                    label="MLA", x=tried, y=over["mean"], low=over["low"], high=over["high"],
                    points=True,
                )
            ],
            lines=[(bound, f"{bound:g} bit") for bound in BOUNDS_BITS],
            log_x=True,
        ),
        Panel(
            title="cache, rotary part included",
            x_label="rank of the latent",
            y_label="share of MHA's cache",
            series=[
                Series(
                    label="MLA", x=tried, y=[row["cache_share"] for row in latent], points=True
                ),
                Series(
                    label="without the rotary key",
                    x=tried,
                    y=[row["kv_lora_rank"] / table[0]["cache_elements"] for row in latent],
                    dashed=True,
                ),
            ],
            lines=[(SHARE, "1/8")],
            log_x=True,
        ),
        Panel(
            title="training",
            x_label="training step",
            y_label="held-out loss, nats per byte",
            series=[loss_band(arm.name, sweep.runs[arm.name]) for arm in arms.values()],
        ),
    )  # fmt: skip
