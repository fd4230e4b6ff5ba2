"""Where each head looks: the (N, N) attention weights of a small layer over a sentence.

A head's map is its softmaxed scores. Entropy says how spread a row is, distance how far back it
looks; neither says what a head is for, and a head need not have one job that can be named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from configurator.attention.gqa import GroupedQueryAttention
from configurator.core.errors import UsageError, show
from configurator.core.kinds.gqa import GroupedQuery
from configurator.probe.hook import THRESHOLD, recipe_for
from configurator.probe.model import MOST_SEED, TinyModel, build
from configurator.probe.task import Task, task
from configurator.probe.train import Progress, train
from configurator.study.words import pieces

__all__ = ["CAUTION", "MOST_HEADS", "HeadMap", "Maps", "maps", "measures"]

CAUTION = (
    "A map shows where a head looks on this text, not what it is for: a head need not have one "
    "job that a person can name, most do several things at once, and random weights show "
    "structure too."
)
MOST_HEADS = 128
_D_HEAD = 16
_TRAIN_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMap:
    """One head: its weights (queries x keys, rows sum to 1) and what can be measured on them.

    Attributes:
        layer: counted from 1.
        head: counted from 1.
        entropy_bits: mean over rows of ``-sum p log2 p``.
        entropy_share: the same over the most it could be (``log2`` of the keys a row may see).
        distance: mean over rows of ``sum p |i - j|`` in pieces; None for cross-attention.
        to_self, to_previous, to_first: mean weight on the piece itself, the one before, the first.
        to_follower: mean weight on what followed an earlier occurrence of the same piece, over
            the rows where there is one; None without any. An induction head scores high.
    """

    layer: int
    head: int
    weights: tuple[tuple[float, ...], ...]
    entropy_bits: float
    entropy_share: float
    distance: float | None
    to_self: float | None
    to_previous: float | None
    to_first: float
    to_follower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """All heads of all layers over one text."""

    text: tuple[str, ...]
    source: tuple[str, ...] | None
    weights: str
    causal: bool
    heads: tuple[HeadMap, ...]
    seed: int
    caution: str = CAUTION

    def to_dict(self) -> dict[str, Any]:
        """Plain values with the keys of the JSON document."""
        return asdict(self)


def maps(
    text: str,
    *,
    source: str | None = None,
    n_heads: int = 4,
    n_kv_heads: int | None = None,
    trained: str | None = None,
    steps: int = _TRAIN_STEPS,
    causal: bool = True,
    seed: int = 0,
    watch: Callable[[Progress], None] | None = None,
) -> Maps:
    """Attention of each head over ``text``, or of ``text`` over ``source``.

    The layer is random, or two layers are trained on one of the probe's tasks first; equal words
    are equal tokens to it, so a trained model can be asked about any sentence that repeats some.

    Args:
        text: a sentence in any language; it gives the queries.
        source: another one that gives the keys (cross-attention, never causal).
        n_heads: query heads of width 16.
        n_kv_heads: heads of keys and values; as many as query heads by default.
        trained: ``induction``, ``recall`` or ``copy``; None leaves the weights random.
        steps: the most training steps.
        causal: a piece sees itself and what comes before.
        seed: of the weights.
        watch: told the live loss while training.

    Raises ``UsageError`` for a text too short or too long, or options that do not go together.
    """
    if n_heads < 1 or (n_kv_heads is not None and (n_kv_heads < 1 or n_heads % n_kv_heads)):
        raise UsageError(
            f"n-heads {show(n_heads)}"
            + (f" with n-kv-heads {show(n_kv_heads)}" if n_kv_heads is not None else "")
            + " must be at least 1, and n-kv-heads one of its divisors"
        )
    if n_heads > MOST_HEADS:
        raise UsageError(f"n_heads is {show(n_heads)}; more than {MOST_HEADS} maps cannot be read")
    if not 0 <= seed <= MOST_SEED:
        raise UsageError(f"seed is {show(seed)}; it must be from 0 to {MOST_SEED}")
    attention = GroupedQuery(
        d_model=n_heads * _D_HEAD, n_heads=n_heads, n_kv_heads=n_kv_heads or n_heads, d_head=_D_HEAD
    )
    queries, keys = pieces(text), None if source is None else pieces(source)
    if trained is not None:
        if keys is not None or not causal:
            raise UsageError(
                "--trained models read one text from left to right; leave out --source and "
                "--no-causal, or --trained"
            )
        layers, said = _trained(attention, queries, trained, steps, seed, watch)
    else:
        layers = [_random(attention, queries, keys, causal, seed)]
        said = f"random weights, seed {seed}"
    causal = causal and keys is None
    heads = [
        measures(weights, layer=i + 1, head=j + 1, causal=causal, words=queries, cross=bool(keys))
        for i, layer in enumerate(layers)
        for j, weights in enumerate(layer)
    ]
    return Maps(
        text=tuple(queries),
        source=None if keys is None else tuple(keys),
        weights=said,
        causal=causal,
        heads=tuple(heads),
        seed=seed,
    )


def measures(
    weights_NM: NDArray[np.float64],
    *,
    layer: int,
    head: int,
    causal: bool,
    words: Sequence[str],
    cross: bool = False,
) -> HeadMap:
    """Entropy, distance and where the weight goes, of one head's map."""
    n_rows, n_columns = weights_NM.shape
    logs = np.log2(weights_NM, out=np.zeros_like(weights_NM), where=weights_NM > 0)
    entropy_N = -(weights_NM * logs).sum(axis=1)
    visible_N = np.arange(1, n_rows + 1) if causal else np.full(n_rows, n_columns)
    most = float(np.log2(visible_N).mean())
    gap = np.abs(np.arange(n_rows)[:, None] - np.arange(n_columns)[None, :])
    follower = None if cross else _to_follower(weights_NM, words)
    return HeadMap(
        layer=layer,
        head=head,
        weights=tuple(tuple(float(w) for w in row) for row in weights_NM),
        entropy_bits=float(entropy_N.mean()),
        entropy_share=float(entropy_N.mean()) / most,
        distance=None if cross else float((weights_NM * gap).sum(axis=1).mean()),
        to_self=None if cross else float(np.diagonal(weights_NM).mean()),
        to_previous=None if cross else float(np.diagonal(weights_NM, -1).mean()),
        to_first=float(weights_NM[:, 0].mean()),
        to_follower=follower,
    )


def _to_follower(weights_NM: NDArray[np.float64], words: Sequence[str]) -> float | None:
    """Mean weight of a piece on the successors of its earlier occurrences."""
    shares = []
    for i, word in enumerate(words):
        after = [j + 1 for j in range(i) if words[j] == word and j + 1 <= i]
        if after:
            shares.append(float(weights_NM[i, after].sum()))
    return float(np.mean(shares)) if shares else None


def _random(
    attention: GroupedQuery,
    queries: Sequence[str],
    keys: Sequence[str] | None,
    causal: bool,
    seed: int,
) -> NDArray[np.float64]:
    """One layer with Xavier weights over random word vectors; (heads, queries, keys)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = GroupedQueryAttention(attention, causal=causal, cross=keys is not None)
        for module in layer.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
    with torch.inference_mode():
        x_BSD = _vectors(queries, attention.d_model, seed)
        source_BTD = None if keys is None else _vectors(keys, attention.d_model, seed)
        _, weights_BHST = layer(x_BSD, source_BTD, need_weights=True)
    return _plain(weights_BHST)


def _vectors(words: Sequence[str], width: int, seed: int) -> Tensor:
    """A standard normal vector for each word, the same wherever the word stands: (1, S, D)."""
    rows = []
    for word in words:
        digest = hashlib.sha256(word.encode()).digest()
        rng = np.random.default_rng((seed, int.from_bytes(digest[:8], "big")))
        rows.append(rng.standard_normal(width))
    return torch.from_numpy(np.stack(rows)).float()[None]


def _trained(
    attention: GroupedQuery,
    words: Sequence[str],
    task_name: str,
    steps: int,
    seed: int,
    watch: Callable[[Progress], None] | None,
) -> tuple[list[NDArray[np.float64]], str]:
    """Two layers trained on a task, then read over the sentence; one array a layer."""
    chosen = task(task_name)
    tokens = _tokens(chosen, words)
    model = build(attention, layers=2, vocab_size=chosen.vocab_size, seed=seed)
    done = train(
        model,
        chosen,
        label=task_name,
        seed=seed,
        steps=steps,
        recipe=replace(recipe_for(attention, chosen), held_out_rows=32),
        watch=watch,
    )
    said = (
        f"two layers trained on {task_name}"
        + (", which they did not learn" if done.accuracy < THRESHOLD else "")
        + f": {done.accuracy:.1%} right after {done.steps} steps, seed {seed}"
        + (f"; {chosen.reads}" if chosen.reads else "")
    )
    return _layers(model, torch.tensor([tokens])), said


def _tokens(task: Task, words: Sequence[str]) -> list[int]:
    """A token for each word, equal for equal words.

    Where the task has several kinds of tokens, such as keys and values, the place at which a word
    first stands decides of which kind it is, as in a row of the task.
    """
    pools = task.pools or (range(task.vocab_size),)
    left = [iter(pool) for pool in pools]
    known: dict[str, int] = {}
    for place, word in enumerate(words):
        if word not in known:
            known[word] = next(left[place % len(pools)], -1)
    if len(words) > task.length or -1 in known.values():
        raise UsageError(
            f"the text has {len(words)} pieces, {len(known)} of them different; a model trained on "
            f"{task.name} knows {sum(map(len, pools))} tokens and rows of {task.length}"
        )
    return [known[word] for word in words]


def _layers(model: TinyModel, tokens_BS: Tensor) -> list[NDArray[np.float64]]:
    found = []
    with torch.inference_mode():
        x_BSD = model.embedding(tokens_BS)
        for block in model.layers:
            layer: Any = block
            out_BSD, weights_BHST = layer.attention(layer.attention_norm(x_BSD), need_weights=True)
            found.append(_plain(weights_BHST))
            x_BSD = x_BSD + out_BSD
    return found


def _plain(weights_BHST: Tensor) -> NDArray[np.float64]:
    plain: NDArray[np.float64] = weights_BHST[0].double().cpu().numpy()
    return plain
