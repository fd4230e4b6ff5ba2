"""The usual decoder, reduced to the numbers that every program's settings have a name for."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.cost import params_total
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward
from configurator.interop.export.subject import Subject, refuse
from configurator.interop.huggingface.family import Layer

__all__ = ["Plain", "grouped_of", "plain"]

_HUGGINGFACE = "give --to huggingface"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A pre-norm decoder with two RMSNorms a layer and one at the end.

    Args:
        windows: the window of each layer in order; 0 keeps the whole context.
        dense: the feed-forward of the first ``n_dense`` layers, or of all.
        mixture: the experts of the other layers.
        n_dense: dense layers before the mixture begins; all of them for a dense model.
        params: weights of the whole model.
    """

    attention: GroupedQuery | Latent
    d_model: int
    n_layers: int
    vocab_size: int
    tied: bool
    windows: tuple[int, ...]
    dense: FeedForward | None
    mixture: FeedForward | None
    n_dense: int
    params: int

    @property
    def window(self) -> int:
        """The window of the windowed layers; 0 where there is none."""
        return max(self.windows)

    @property
    def mixed(self) -> bool:
        """Some layers are windowed and some are not."""
        return len(set(self.windows)) > 1

    @property
    def d_ff(self) -> int:
        """Width of the dense feed-forward, or of one expert where no layer is dense."""
        ff = self.dense or self.mixture
        return int(ff.d_ff) if ff is not None else 0


def grouped_of(plain: Plain, who: str) -> GroupedQuery:
    """The attention, which must be MHA, GQA or MQA with values as wide as keys."""
    attention = plain.attention
    if not isinstance(attention, GroupedQuery):
        refuse(who, "MLA", _HUGGINGFACE)
    if attention.v_width != attention.d_head:
        refuse(
            who,
            f"values of {attention.v_width} beside keys of {attention.d_head}",
            "leave out --v-head-dim",
        )
    return attention


def plain(subject: Subject, who: str) -> Plain:
    """The model as a plain decoder.

    Raises ``UsageError`` that names the first thing a plain decoder does not have.
    """
    shape, layers = subject.case.shape, subject.layers
    if shape.arch != "decoder":
        refuse(who, f"an {shape.arch}", "export a decoder, or " + _HUGGINGFACE)
    attention = _attention(layers, who)
    _check_rotary(attention, who)
    windows = {int(layer.scope.size) for layer in layers if layer.scope.kind == "window"}
    if len(windows) > 1:
        sizes = " and ".join(f"{w:,}" for w in sorted(windows))
        refuse(who, f"windows of {sizes} in one model", "use one width")
    _check_norms(subject, who)
    dense, mixture, n_dense = _feed_forwards(layers, who)
    if shape.d_embedding:
        refuse(who, "an embedding of another width than the model's", "use its own config.json")
    if not shape.head:
        refuse(who, "a model without an output head", "use its own config.json")
    return Plain(
        attention=attention,
        d_model=int(shape.d_model),
        n_layers=len(layers),
        vocab_size=int(shape.vocab_size),
        tied=bool(shape.tied),
        windows=tuple(int(x.scope.size) if x.scope.kind == "window" else 0 for x in layers),
        dense=dense,
        mixture=mixture,
        n_dense=n_dense,
        params=int(params_total(shape)),
    )


def _check_rotary(attention: GroupedQuery | Latent, who: str) -> None:
    """Refuse an odd rotary width: positions turn values in pairs in all of these formats."""
    rope, flag = (
        (attention.qk_rope_head_dim, "--qk-rope-head-dim")
        if isinstance(attention, Latent)
        else (attention.d_head, "--d-head")
    )
    if rope % 2:
        refuse(who, f"rotary positions in an odd width of {rope}", f"use {flag} {rope + 1}")


def _attention(layers: tuple[Layer, ...], who: str) -> GroupedQuery | Latent:
    for i, layer in enumerate(layers):
        if layer.attention is None or layer.scope.kind not in ("full", "window"):
            what = layer.label or f"attention of kind {layer.scope.kind}"
            refuse(who, f"layer {i} ({what})", "use the model's own config.json")
    kinds = {layer.attention for layer in layers}
    if len(kinds) != 1:
        refuse(who, f"{len(kinds)} kinds of heads in one model", "use the model's own config.json")
    attention = kinds.pop()
    if not isinstance(attention, GroupedQuery | Latent):
        refuse(who, "an attention of this kind", "use the model's own config.json")
    beside = attention.gate_params or attention.other_params
    if beside or not getattr(attention, "own_kv", True) or getattr(attention, "value_is_key", 0):
        refuse(who, "gates, sinks or shared keys in its attention", "use its own config.json")
    return attention


def _check_norms(subject: Subject, who: str) -> None:
    shape = subject.case.shape
    d = shape.d_model
    usual = all(x.norm_params == 2 * d and not x.other_params for x in subject.layers)
    if not usual or shape.other_params != d:
        refuse(
            who,
            "norms, positions or towers beyond two RMSNorms a layer and one at the end",
            "use the model's own config.json",
        )


def _feed_forwards(
    layers: tuple[Layer, ...], who: str
) -> tuple[FeedForward | None, FeedForward | None, int]:
    """The dense feed-forward, the mixture, and how many dense layers come first."""
    kinds: dict[FeedForward, list[int]] = {}
    for i, layer in enumerate(layers):
        ff = layer.feed_forward
        if ff is None:
            refuse(who, f"layer {i} without a feed-forward", "use the model's own config.json")
        usual_router = ff.router_params in (0, ff.d_model * ff.n_experts)
        if not ff.gated or ff.bias or ff.other_params or not usual_router:
            refuse(
                who,
                "a feed-forward with biases, without a gate, or with a gate on its shared expert",
                "use the model's own config.json",
            )
        kinds.setdefault(ff, []).append(i)
    dense = [ff for ff in kinds if ff.kind == "dense"]
    mixtures = [ff for ff in kinds if ff.kind == "moe"]
    n_dense = sum(len(kinds[ff]) for ff in dense)
    in_front = not dense or kinds[dense[0]] == list(range(n_dense))
    if len(dense) > 1 or len(mixtures) > 1 or not in_front:
        refuse(
            who,
            "feed-forwards that differ from layer to layer, but for dense layers in front",
            "use the model's own config.json",
        )
    return next(iter(dense), None), next(iter(mixtures), None), n_dense
