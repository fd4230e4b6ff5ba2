"""From a family and its keys to a model's shape: layers one by one, equal ones gathered."""

from __future__ import annotations

from collections.abc import Iterable

from configurator.core.errors import UsageError
from configurator.core.layers import LayerGroup, ModelShape, Scope
from configurator.interop.huggingface.attention import grouped, is_latent, latent
from configurator.interop.huggingface.config import MAX_LAYERS, Config
from configurator.interop.huggingface.family import Family, Layer, State, resolve
from configurator.interop.huggingface.feed_forward import feed_forward_of
from configurator.interop.huggingface.scopes import (
    FEED_FORWARD_ONLY,
    INDEXED,
    kinds_of,
    scope_of,
)

__all__ = [
    "build",
    "crossing",
    "encodes",
    "gather",
    "is_bare",
    "layers_of",
    "norm_size",
    "plain_layer",
    "state_layer",
]


def norm_size(config: Config, norm: str) -> int:
    """Weights of one norm over the model's width."""
    return {"rms": 1, "bare": 1, "layer": 2, "none": 0}[norm] * config.count("hidden_size")


def layer_count(config: Config, family: Family) -> int:
    """Layers that the configuration counts, within what any model has."""
    n = family.n_layers(config) if family.n_layers else config.count("num_hidden_layers")
    if not 1 <= n <= MAX_LAYERS:
        raise UsageError(f"{config.key('num_hidden_layers')} is {n}; no model has that many layers")
    return n


def layers_of(config: Config, family: Family) -> list[Layer]:
    """Every layer in order; a block with two caches gives two."""
    n = layer_count(config, family)
    found: list[Layer] = []
    for i, kind in enumerate(kinds_of(config, family, n)):
        build_layer = family.layers or plain_layer
        found.extend(build_layer(config, family, i, kind))
    return found


def plain_layer(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    """One pre-norm block of the usual make: a mixer, a feed-forward, and their norms."""
    norms = resolve(family.norms, config) * norm_size(config, family.norm)
    other = family.layer_extra(config, i, kind) if family.layer_extra else 0
    if kind in family.mixers:
        state = family.mixers[kind](config, i)
        return [state_layer(state, feed_forward_of(config, family, i), norms, other)]
    if kind in ("linear_attention", "conv", "hybrid"):
        raise UsageError(
            f"layer {i} is {kind}, whose state is not known for model_type "
            f"{config.model_type or 'unknown'}; audit it as a family that is known"
        )
    if kind in FEED_FORWARD_ONLY:
        return [
            Layer(
                feed_forward=feed_forward_of(config, family, i),
                norm_params=norms,
                other_params=other,
                label=kind,
            )
        ]
    if family.attention is not None:
        attention = family.attention(config, family, i, kind)
    elif is_latent(config):
        attention = latent(config, family, i, indexed=kind == INDEXED)
    else:
        attention = grouped(config, family, i)
    reads_all = encodes(config, family)
    layer = Layer(
        attention=attention,
        scope=Scope("none") if reads_all else scope_of(config, kind),
        feed_forward=feed_forward_of(config, family, i),
        norm_params=norms,
        other_params=other,
        label="encoder" if reads_all else "",
    )
    if reads_all or not config.flag("add_cross_attention"):
        return [layer]
    return [layer, crossing(layer, norm_size(config, family.norm))]


def encodes(config: Config, family: Family) -> bool:
    """Whether the model keeps no cache: an encoder, unless its file makes it a decoder."""
    return family.arch == "encoder" and not config.flag("is_decoder")


def crossing(layer: Layer, norm: int) -> Layer:
    """The attention to a source beside a decoder layer's own: equal heads, a norm, its cache."""
    return Layer(
        attention=layer.attention,
        scope=Scope("cross", 0),
        norm_params=norm,
        label="cross-attention",
    )


def state_layer(
    state: State, feed_forward: object, norms: int, other: int = 0, *, beside: bool = False
) -> Layer:
    """A recurrent layer: its mixer's weights, its fixed state, and the feed-forward beside it."""
    return Layer(
        scope=Scope("recurrent", state.bytes),
        feed_forward=feed_forward,  # type: ignore[arg-type]
        norm_params=norms,
        other_params=state.params + other,
        state=state,
        beside=beside,
        label=state.kind,
    )


def gather(layers: Iterable[Layer]) -> tuple[tuple[LayerGroup, ...], tuple[State | None, ...]]:
    """Groups of equal layers in order of appearance, and the state that each group keeps."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    groups = tuple(
        LayerGroup(
            count=count,
            attention=layer.attention,
            scope=layer.scope,
            feed_forward=layer.feed_forward,
            norm_params=layer.norm_params,
            other_params=layer.other_params,
            weights=layer.weights,
            label=layer.label,
        )
        for layer, count in counts.items()
    )
    return groups, tuple(layer.state for layer in counts)


def is_bare(config: Config, ending: str = "Model") -> bool:
    """Whether ``architectures`` names a model without an output head, such as ``BertModel``."""
    names = config.values.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        return False
    return names[0].endswith(ending) and "Head" not in names[0]


def build(
    config: Config, family: Family, *, tied: bool, towers: int = 0
) -> tuple[ModelShape, tuple[Layer, ...]]:
    """The model's shape and its layers one by one; ``towers`` are weights of other modalities."""
    layers = layers_of(config, family)
    groups, _ = gather(layers)
    vocab = family.vocab_size(config) if family.vocab_size else config.maybe("vocab_size")
    if vocab is None:
        config.notes.unknown.append(config.named("vocab_size"))
    extra = family.extra(config) if family.extra else 0
    return ModelShape(
        d_model=config.count("hidden_size"),
        n_layers=layer_count(config, family),
        vocab_size=vocab or 0,
        groups=groups,
        tied=tied,
        other_params=family.final_norms * norm_size(config, family.norm) + extra + towers,
        arch=family.arch,
        head=family.head and not (family.bare and is_bare(config)),
        d_embedding=family.d_embedding(config) if family.d_embedding else 0,
    ), tuple(layers)
