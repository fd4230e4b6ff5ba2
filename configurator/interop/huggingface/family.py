"""What sets one family of models apart from the plain decoder, as data; found by walking families/.

A plain decoder has pre-norm blocks of attention and a gated feed-forward, RMS norms, no biases
and one norm at the end. A :class:`Family` says where a family differs. A field may be a value or
a function of the configuration, so a family is a few lines and a new one is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.config import Config

__all__ = ["Family", "Layer", "Mixture", "State", "families", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Fixed state that one recurrent layer keeps for a sequence, and the weights that make it.

    Args:
        kind: what the layer is called: ``mamba2``, ``gated delta net``, ``short convolution``.
        params: weights of the layer's mixer.
        values: values of the recurrent state, kept as fp32 in transformers 5.24.
        channels: channels of the causal convolution.
        taps: past inputs kept for each channel, in the model's 2-byte type.
        value_bytes: bytes of one recurrent value where it is not kept as fp32.
    """

    kind: str
    params: int
    values: int = 0
    channels: int = 0
    taps: int = 0
    value_bytes: int = 4

    @property
    def bytes(self) -> int:
        """Bytes of one layer's state for one sequence, as transformers 5.24 keeps it in bf16."""
        return self.values * self.value_bytes + self.channels * self.taps * 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One block, or one part of a block that keeps a cache of its own.

    ``weights`` is False for a block whose weights another one has counted, ``beside`` True for a
    second cache or state of the layer before.
    """

    attention: Attention | None = None
    scope: Scope = field(default_factory=lambda: Scope("none"))
    feed_forward: FeedForward | None = None
    norm_params: int = 0
    other_params: int = 0
    state: State | None = None
    weights: bool = True
    beside: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """How a family spells its mixture of experts.

    Args:
        width: key of one expert's width.
        shared: ``count`` (shared experts of the same width), ``size`` (their width is a key of
            its own), ``stated`` (its width, else the count), ``one`` (one of the experts' width) or
            ``none``.
        shared_gate: a learned gate of ``d_model`` weights on the shared experts.
        router_bias: the router has biases.
        correction_bias: a learned correction per expert is a parameter, not a buffer.
        bias: experts have biases.
        shared_bias: the shared experts alone have biases.
        gated: experts have three matrices.
        first_dense: leading dense layers where the file does not say.
        sparse: whether layer ``i`` is a mixture, where the usual keys do not say it.
        dense_width: key of a dense layer's width.
        dense_at_zero: without routed experts the layer is a dense one; else the router and the
            shared experts are built all the same.
    """

    width: str = "moe_intermediate_size"
    shared: str = "none"
    shared_gate: bool = False
    router_bias: bool = False
    correction_bias: bool = False
    bias: bool = False
    shared_bias: Callable[[Config], bool] | None = None
    gated: bool = True
    first_dense: int = 0
    sparse: Callable[[Config, int], bool] | None = None
    dense_width: str = "intermediate_size"
    dense_at_zero: bool = False
    router: Callable[[Config], int] | None = None
    other: Callable[[Config], int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Where a family differs from the plain decoder.

    Args:
        norm: ``rms`` and ``bare`` hold a scale, ``layer`` a scale and a shift, ``none`` nothing.
        norms: norms in a block.
        final_norms: norms after the last block.
        bias: ``none``, ``qkv``, ``all`` or ``o``, or a function of the configuration.
        qk_norm: ``none``, ``head`` (one scale for all heads), ``heads`` (one for each head),
            ``width`` (over all heads at once) or ``layer`` (a scale and a shift).
        gate: output gate of the attention: ``none``, ``head`` (one value a head), ``width``
            (every value) or ``fused`` (the same, as a second half of the query projection).
        sinks: one learned sink per query head.
        gated: the dense feed-forward has three matrices.
        mlp_bias: the dense feed-forward has biases.
        mixture: how experts are spelt; ``None``: never a mixture.
        pattern: layer kinds where the file does not list them.
        attention: builds layer ``i``'s attention where the usual keys do not suffice.
        feed_forward: builds layer ``i``'s feed-forward likewise.
        mixers: builders of recurrent layers by kind.
        layers: builds layer ``i`` as a whole, for blocks of another make.
        n_layers: number of layers where no key holds it.
        layer_extra: further weights of layer ``i``.
        extra: further weights of the model: position tables, head biases.
        d_embedding: width of the embedding where it is not the model's.
        vocab_size: rows of the embedding where no plain key holds it.
        tied: whether the output head is the embedding, where the file does not say; ``None``:
            never, whatever it says.
        head: there is an output head.
        bare: a file whose ``architectures`` names ``...Model`` has no output head.
        arch: ``decoder``, ``encoder`` or ``encoder-decoder``.
        kv_default: KV heads where the file does not say and the class has no default.
        head_width: head width where the file does not say.
        missing_null: what null means for KV heads: ``heads``, the same with a warning (``warn``)
            or ``refuse``.
        notes: warnings that hold for every model of the family.
        known: the family is known; else sizes that no key states stay unknown.
        whole: builds the model's shape and layers where it is not one stack of layers.
    """

    norm: str = "rms"
    norms: int | Callable[[Config], int] = 2
    final_norms: int = 1
    bias: str | Callable[[Config], str] = "attention_bias"
    qk_norm: str | Callable[[Config], str] = "none"
    gate: str | Callable[[Config], str] = "none"
    sinks: bool | Callable[[Config, int], bool] = False
    gated: bool | Callable[[Config], bool] = True
    mlp_bias: bool | Callable[[Config], bool] = False
    mixture: Mixture | None = None
    pattern: Callable[[Config, int], list[str]] | None = None
    attention: Callable[[Config, Family, int, str], Attention] | None = None
    feed_forward: Callable[[Config, Family, int], FeedForward | None] | None = None
    mixers: Mapping[str, Callable[[Config, int], State]] = field(default_factory=dict)
    layers: Callable[[Config, Family, int, str], list[Layer]] | None = None
    n_layers: Callable[[Config], int] | None = None
    layer_extra: Callable[[Config, int, str], int] | None = None
    extra: Callable[[Config], int] | None = None
    d_embedding: Callable[[Config], int] | None = None
    vocab_size: Callable[[Config], int] | None = None
    tied: bool | Callable[[Config], bool] | None = False
    head: bool = True
    bare: bool = True
    arch: str = "decoder"
    kv_default: Callable[[Config], int] | None = None
    head_width: Callable[[Config], int] | None = None
    missing_null: str = "heads"
    notes: tuple[str, ...] = ()
    known: bool = True
    whole: Callable[[Config, Family], tuple[Any, tuple[Layer, ...]]] | None = None


def resolve(value: Any, *args: Any) -> Any:
    """``value``, or what it returns for ``args`` where it is a function."""
    return value(*args) if callable(value) else value


@cache
def families() -> dict[str, Family]:
    """Every known family by model type; each module of the folder holds a table ``FAMILIES``."""
    from configurator.interop.huggingface import families as folder

    found: dict[str, Family] = {}
    for info in iter_modules(folder.__path__):
        found |= import_module(f"{folder.__name__}.{info.name}").FAMILIES
    return found
