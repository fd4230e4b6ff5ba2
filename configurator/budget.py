"""From a parameter budget to model shapes: width, depth, feed-forward, vocabulary.

Width and depth follow what the field does (d_model / n_layers about 40 below 1B, 85 to 4B, 100 to
50B, 130 above, on 80 dense shapes since 2024); loss hardly cares (Kaplan et al. 2020: a 40-fold
change costs under 3 %). The feed-forward then takes what is left, so that the total meets the
budget within 1 %, or, for a mixture of experts, so that total and active both do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from configurator.core.case import FeedForward
from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.units import Count

__all__ = ["Frame", "fit_feed_forward", "frames", "is_mixture", "lower_ranks", "sparsity"]

_RATIOS = ((1e9, 40.0), (4e9, 85.0), (50e9, 100.0), (math.inf, 130.0))
_SPARSE_FROM = 4.0  # dense models lie at 0.7 to 3.0, mixtures at 5.1 and up, nothing between
_ACTIVE_SHARE = 0.86  # active parameters over 12 * n_layers * d_model^2, mean of 29 mixtures
_FINEST = 8
_MOST_LAYERS = 1000
# (experts a token visits, shared experts), most usual first in mixtures since 2024.
_ROUTING = ((8, 1), (8, 0), (6, 2), (6, 1), (4, 1), (4, 0), (10, 1), (2, 1), (2, 0), (1, 1))
_EXPERT_STEPS = (64, 32, 16, 8, 4, 2, 1)
# A snapped width moves the depth by a quarter of what it would take to keep 12 L d^2; the
# feed-forward takes up the rest. Chosen on dense shapes since 2024: both within 25 % for 73 %.
_DEPTH_FOLLOWS_WIDTH = 0.25
# Widths in steps that grow with the width, so that heads of 128 come in multiples of 4, 8, 16.
_WIDTH_STEPS = ((512, 64), (768, 128), (1536, 256), (3072, 512), (7168, 1024), (math.inf, 2048))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A model around the attention: all that is fixed before its geometry is chosen.

    ``active_params`` is 0 for a dense model. ``notes`` say what was assumed.
    """

    params: int
    d_model: int
    n_layers: int
    vocab_size: int
    tied: bool
    arch: str = "decoder"
    active_params: int = 0
    label: str = "usual depth"
    notes: tuple[str, ...] = ()

    @property
    def embedding_params(self) -> int:
        """Embedding and output head, once where tied."""
        return self.vocab_size * self.d_model * (1 if self.tied or self.arch == "encoder" else 2)

    @property
    def sparsity(self) -> float:
        """``params / (12 * n_layers * d_model^2)``: 4 and more means a mixture of experts."""
        return sparsity(self.params, self.n_layers, self.d_model)


def sparsity(params: Count, n_layers: Count, d_model: Count) -> float:
    """Total parameters over what a dense model of this width and depth holds."""
    return float(params) / (12.0 * float(n_layers) * float(d_model) ** 2)


def is_mixture(params: Count, n_layers: Count, d_model: Count) -> bool:
    """Whether a shape with these totals is a mixture of experts, even when nobody says so."""
    return sparsity(params, n_layers, d_model) >= _SPARSE_FROM


def _ratio(params: float) -> float:
    return next(ratio for limit, ratio in _RATIOS if params < limit)


def _per_block(arch: str) -> float:
    """Parameters of one layer over d_model^2: 12, or 28 for an encoder and a decoder layer."""
    return 28.0 if arch == "encoder-decoder" else 12.0


def _snap_width(width: float, heads_multiple: int, d_head: int | None) -> int:
    """The nearest width (in ratio) that tensor cores and whole heads like.

    ``d_head`` is the head width that was asked for; without one it is the usual one.
    """
    step = next(step for limit, step in _WIDTH_STEPS if width < limit)
    if d_head and step % d_head:  # as many heads a step as there are of 128
        step = math.lcm(64, d_head * max(1, step // 128))
    if heads_multiple > 1:
        step = math.lcm(step, (d_head or (128 if width >= 1024 else 64)) * heads_multiple)
    low = max(step, int(width // step) * step)
    high = low + step if low <= width else low
    return low if width / low <= high / width else high


def frames(
    *,
    params: int,
    active_params: int | None,
    d_model: int | None,
    n_layers: int | None,
    vocab_size: int | None,
    tied: bool | None,
    arch: str,
    tensor_parallel: int = 1,
    d_head: int | None = None,
) -> list[Frame]:
    """Model shapes that meet the budget: the preferred one first, then a deeper and a flatter one.

    Only one is returned where width or depth is given. A width of its own choice is a multiple of
    ``d_head``, where that is given, and holds whole heads for each of ``tensor_parallel`` ranks.
    Raises ``UsageError`` where the vocabulary or the width alone exceeds the budget.
    """
    vocab = vocab_size or (50_304 if params < 1e9 else 100_352)
    tie = tied if tied is not None else (params < 4e9 or arch != "decoder")
    base = Frame(
        params=params,
        d_model=0,
        n_layers=0,
        vocab_size=vocab,
        tied=tie,
        arch=arch,
        active_params=active_params or 0,
    )
    notes: list[str] = []
    if d_model and n_layers:
        if arch == "decoder" and not active_params and is_mixture(params, n_layers, d_model):
            active = round(_ACTIVE_SHARE * 12 * n_layers * d_model**2)
            base = replace(base, active_params=active)
            notes.append(
                f"{params:,} parameters are {sparsity(params, n_layers, d_model):.1f} x what a "
                f"dense model of this width and depth holds, so this is a mixture of experts; "
                f"active parameters taken as {active:,}"
            )
        found = [replace(base, d_model=d_model, n_layers=n_layers, notes=tuple(notes))]
    else:
        found = _free(base, d_model, n_layers, tensor_parallel, d_head)
    for frame in found:
        _check_room(frame, lower_ranks(d_model, tensor_parallel))
    return found


def lower_ranks(d_model: int | None, ranks: int) -> str:
    """A remedy for a width that was only chosen so wide to give every rank whole heads."""
    return "" if d_model or ranks == 1 else f", or lower --tensor-parallel from {ranks}"


def _free(
    base: Frame, d_model: int | None, n_layers: int | None, ranks: int, d_head: int | None
) -> list[Frame]:
    size = base.active_params or base.params
    share = _ACTIVE_SHARE if base.active_params else 1.0
    block = _per_block(base.arch)

    def layers_for(width: int) -> int:
        room = size - replace(base, d_model=width).embedding_params
        return max(1, round(room / share / (block * width**2)))

    if d_model:
        return [replace(base, d_model=d_model, n_layers=layers_for(d_model))]
    found: list[Frame] = []
    scales = ((1.0, "usual depth"), (0.75, "deeper"), (1.3, "flatter"))
    for scale, label in scales if n_layers is None else scales[:1]:
        width = 512.0
        for _ in range(40):  # the embedding depends on the width it is taken off for
            room = size - base.vocab_size * width * (1 if base.tied else 2)
            room = max(room, 0.05 * size) / share
            if n_layers:
                width = math.sqrt(room / (block * n_layers))
            else:
                ratio = _ratio(size) * scale * math.sqrt(block / 12.0)
                width = ratio * (room / (block * ratio**2)) ** (1 / 3)
        snapped = _snap_width(width, ranks, d_head)
        unsnapped = room / (block * width**2)
        depth = n_layers or _even(
            unsnapped ** (1 - _DEPTH_FOLLOWS_WIDTH) * layers_for(snapped) ** _DEPTH_FOLLOWS_WIDTH
        )
        frame = replace(base, d_model=snapped, n_layers=depth, label=label)
        if all((frame.d_model, frame.n_layers) != (f.d_model, f.n_layers) for f in found):
            found.append(frame)
    return found


def _even(layers: float) -> int:
    """Depths of eight and more are even, as nearly all published ones are."""
    return max(1, round(layers)) if layers < 8 else 2 * round(layers / 2)


def _check_room(frame: Frame, remedy: str) -> None:
    if frame.n_layers > _MOST_LAYERS:
        raise UsageError(
            f"d-model {frame.d_model} would need {frame.n_layers:,} layers for "
            f"{frame.params:,} parameters, and more than {_MOST_LAYERS:,} train nowhere; raise "
            "--d-model"
        )
    floor = frame.embedding_params
    if floor >= 0.9 * (frame.active_params or frame.params):
        copies = floor // (frame.vocab_size * frame.d_model)
        name = "active-params" if frame.active_params else "params"
        if frame.notes:  # nobody named active parameters: they were derived
            raise UsageError(
                f"params {frame.params:,} do not go with d-model {frame.d_model} and "
                f"{frame.n_layers} layers: a dense model of this width and depth holds a "
                f"{sparsity(frame.params, frame.n_layers, frame.d_model):.0f}th of that, and a "
                f"mixture of experts would have {frame.active_params:,} active, where a "
                f"vocabulary of {frame.vocab_size:,} alone takes {floor:,}; raise --d-model or "
                "--n-layers, or lower --params"
            )
        raise UsageError(
            f"{name} {frame.active_params or frame.params:,} leave no room for layers: a "
            f"vocabulary of {frame.vocab_size:,} at d_model {frame.d_model} takes {floor:,} "
            f"({copies} x vocabulary x width); raise --{name}, or lower --vocab-size or "
            f"--d-model{remedy}"
        )


def fit_feed_forward(frame: Frame, attention: Attention) -> FeedForward:
    """The feed-forward that makes the total (and the active) meet the frame's budget.

    ``attention`` may hold columns; widths are then columns too. The width is a multiple of 1,024
    where that meets the budget within 0.7 %, else of 512, 256, ... 8. A width of zero or less
    means that the attention alone exceeds the budget.
    """
    width, layers = frame.d_model, frame.n_layers
    if frame.arch == "encoder-decoder":
        blocks, norms, attentions = 2 * layers, 5 * width * layers + 2 * width, 3 * layers
    else:
        blocks, norms, attentions = layers, 2 * width * layers + width, layers
    rest = frame.params - frame.embedding_params - norms - attentions * attention.params()
    gated = frame.arch == "decoder"
    matrices = 3 if gated else 2
    if frame.active_params:
        spare = frame.params - frame.active_params
        return _fit_mixture(frame, np.atleast_1d(rest) / layers, spare / layers)
    exact = rest / (blocks * matrices * width)
    d_ff = _rounded(np.atleast_1d(exact), frame.params / (blocks * matrices * width))
    if not isinstance(rest, np.ndarray):
        return FeedForward(d_model=width, d_ff=int(d_ff[0]), gated=gated)
    return FeedForward(d_model=width, d_ff=d_ff, gated=gated)


def _rounded(exact: np.ndarray, budget_in_widths: float) -> np.ndarray:
    """``exact`` to the coarsest multiple whose error stays under 0.7 % of the budget."""
    found = np.full(exact.shape, 0, dtype=np.int64)
    for step in (_FINEST, 16, 32, 64, 128, 256, 512, 1024):
        near = np.round(exact / step) * step
        good = (np.abs(near - exact) < 0.007 * budget_in_widths) | (step == _FINEST)
        found = np.where(good, near, found)
    return found.astype(np.int64)


def _fit_mixture(frame: Frame, room: np.ndarray, spare: float) -> FeedForward:
    """Experts, their width and how many a token visits, from the room of one layer.

    ``room`` are the weights of one layer's whole mixture, ``spare`` those a token does not visit:
    ``spare = (E - k) * 3 * d * w`` and ``room = (E + shared) * 3 * d * w + d * E``, so for each
    way of routing the two budgets give the number of experts; it is rounded to a multiple of 64,
    32, ... 1, whichever is the coarsest that keeps both budgets.
    """
    d, layers = frame.d_model, frame.n_layers
    shape = (len(room), len(_ROUTING), len(_EXPERT_STEPS), 2, 2)
    routing = np.array(_ROUTING)
    k = np.broadcast_to(routing[:, 0][None, :, None, None, None], shape)
    shared = np.broadcast_to(routing[:, 1][None, :, None, None, None], shape)
    step = np.array(_EXPERT_STEPS)[None, None, :, None, None]
    wanted = np.full(shape, 64.0)
    whole = room[:, None, None, None, None]
    for _ in range(8):  # the router's weights depend a little on the number of experts
        share = np.clip(spare / np.maximum(whole - d * wanted, 1.0), 0, 0.999)
        wanted = np.clip((k + share * shared) / (1.0 - share), k + 1.0, 4096.0)
    count = (np.floor(wanted / step) + np.array([0, 1])[:, None]) * step
    exact = (whole - d * count) / (3.0 * d * np.maximum(count + shared, 1))
    per_width = 3.0 * d * (count + shared) * layers
    grain = np.array([64, _FINEST])  # matrix units want multiples of 64; 8 where nothing else fits
    width = np.round(exact / grain) * grain
    total_error = (width - exact) * per_width
    active_error = total_error - ((count - k) * 3.0 * d * width - spare) * layers
    misfit = np.maximum(
        np.abs(total_error) / frame.params, np.abs(active_error) / frame.active_params
    )
    # Inside 0.8 % of both budgets what is usual decides; up to 1 % only where nothing else does.
    liking = 0.05 * np.arange(len(_ROUTING))[None, :, None, None, None]
    liking = liking + 0.02 * np.arange(len(_EXPERT_STEPS))[None, None, :, None, None]
    liking = liking + np.array([0.0, 0.3])
    unusual = 0.1 * np.abs(np.log2(np.maximum(width, 1.0) / np.clip(0.3 * d, 512, 2048)))
    score = np.where(misfit < 0.008, 0.0, 100.0 * (1.0 + misfit)) + liking + unusual
    possible = (width >= 8) & (count > k) & (misfit < 0.01)
    score = np.where(possible, score, np.inf).reshape(len(room), -1)
    best = np.argmin(score, axis=1)
    rows = np.arange(len(room))

    def picked(values: np.ndarray) -> np.ndarray:
        chosen: np.ndarray = values.reshape(len(room), -1)[rows, best].astype(np.int64)
        return chosen

    w = np.where(np.isfinite(score[rows, best]), picked(width), 0)
    experts, extra = np.maximum(picked(count), 1), picked(shared) * w
    visits = np.minimum(picked(k), experts)  # rows without a fit must still be a mixture
    if len(room) == 1:
        return FeedForward(
            d_model=d,
            d_ff=int(w[0]),
            n_experts=int(experts[0]),
            experts_per_token=int(visits[0]),
            shared_d_ff=int(extra[0]),
        )
    return FeedForward(
        d_model=d, d_ff=w, n_experts=experts, experts_per_token=visits, shared_d_ff=extra
    )
