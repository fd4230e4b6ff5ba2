"""A whole model from the few numbers of a hand-given geometry, saying what was assumed."""

from __future__ import annotations

from configurator.core.case import FeedForward, ModelShape
from configurator.core.columns import ceil_div
from configurator.core.kinds import Attention
from configurator.core.kinds.mla import Latent
from configurator.core.shapes import decoder, encoder, encoder_decoder, geometry
from configurator.schema import GeometryRequest

__all__ = ["complete_shape"]

_RATIO = 100  # d_model / n_layers, the median of models from 4B to 50B since 2024


def complete_shape(request: GeometryRequest, source_len: int, warnings: list[str]) -> ModelShape:
    """The shape a request means: missing depth, feed-forward and vocabulary take usual values.

    Each value taken is said in ``warnings``.
    """
    attention = attention_of(request)
    if isinstance(attention, Latent):
        warnings += _latent_widths(request, attention)
    d_model = request.d_model
    layers = request.n_layers or max(1, round(d_model / _RATIO))
    if request.n_layers is None:
        warnings.append(f"n_layers taken as {layers}, d_model / {_RATIO} as usual")
    d_ff = request.d_ff or _usual_width(attention, d_model)
    if request.d_ff is None:
        warnings.append(f"d_ff taken as {d_ff:,}, so that a layer holds about 12 d_model^2 weights")
    estimate = 12 * layers * d_model**2
    vocab = request.vocab_size or (50_304 if estimate < 9e8 else 100_352)
    if request.vocab_size is None:
        warnings.append(f"vocab_size taken as {vocab:,}")
    tied = estimate < 4e9 if request.tie_embeddings is None else request.tie_embeddings
    if request.arch == "encoder":
        ff = FeedForward(d_model=d_model, d_ff=d_ff, gated=False)
        return encoder(attention, n_layers=layers, feed_forward=ff, vocab_size=vocab)
    if request.arch == "encoder-decoder":
        ff = FeedForward(d_model=d_model, d_ff=d_ff, gated=False)
        return encoder_decoder(
            attention,
            n_layers=layers,
            feed_forward=ff,
            vocab_size=vocab,
            source_len=source_len,
            tied=tied,
        )
    return decoder(
        attention,
        n_layers=layers,
        feed_forward=FeedForward(d_model=d_model, d_ff=d_ff),
        vocab_size=vocab,
        tied=tied,
        window=request.window or 0,
        full_every=request.full_every or 0,
    )


def attention_of(request: GeometryRequest) -> Attention:
    """The attention a hand-given geometry names; MLA where a latent rank is given."""
    if request.kv_lora_rank is None:
        return geometry(
            d_model=request.d_model,
            n_heads=request.n_heads,
            n_kv_heads=request.n_kv_heads or 0,
            d_head=request.d_head or 0,
            v_head_dim=request.v_head_dim or 0,
        )
    nope = request.qk_nope_head_dim or request.d_head or 128
    return geometry(
        d_model=request.d_model,
        n_heads=request.n_heads,
        kv_lora_rank=request.kv_lora_rank,
        q_lora_rank=request.q_lora_rank or 0,
        qk_nope_head_dim=nope,
        qk_rope_head_dim=request.qk_rope_head_dim or nope // 2,
        v_head_dim=request.v_head_dim or nope,
    )


def _latent_widths(request: GeometryRequest, attention: Latent) -> list[str]:
    """A word on the widths of an MLA head that were not given."""
    given = {"qk_nope_head_dim": request.qk_nope_head_dim or request.d_head}
    taken = [
        f"{name.replace('_', '-')} {getattr(attention, name)}"
        for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        if not given.get(name, getattr(request, name))
    ]
    return [f"taken as usual: {', '.join(taken)}"] if taken else []


def _usual_width(attention: Attention, d_model: int) -> int:
    room = 12 * d_model**2 - int(attention.params())
    return max(256, int(ceil_div(room // (3 * d_model), 256)) * 256)
