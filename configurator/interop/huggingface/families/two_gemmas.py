"""T5Gemma: a Gemma that encodes and a Gemma that decodes, with cross-attention between them.

The decoder's own windows slide; the source's keys and values are kept whole. T5Gemma 2 projects
them with the same matrices as the decoder's own, and reads images with SigLIP.
"""

from __future__ import annotations

from dataclasses import replace

from configurator.core.errors import UsageError
from configurator.core.layers import ModelShape, Scope
from configurator.interop.huggingface.assemble import gather, norm_size, plain_layer
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import MAX_LAYERS, Config
from configurator.interop.huggingface.defaults import class_defaults
from configurator.interop.huggingface.family import Family, Layer
from configurator.interop.huggingface.rules import alternate, full_every
from configurator.interop.huggingface.scopes import kinds_of
from configurator.interop.huggingface.towers.blocks import siglip, width_of

__all__ = ["FAMILIES"]

Whole = tuple[ModelShape, tuple[Layer, ...]]

_FIRST = Family(norms=4, tied=True, pattern=alternate)
_SECOND = Family(
    norms=4, tied=True, qk_norm="head", pattern=full_every("sliding_window_pattern", 6)
)


def _side(config: Config, *path: str, model_type: str, optional: bool = False) -> Config:
    """The Gemma under ``path``; what it leaves out, its class fills in."""
    level = config
    for key in path:
        inner = level.section(key, model_type)
        if inner is None and not optional:
            raise UsageError(
                f"{level.named(key)} is missing; {config.model_type} states its encoder and decoder"
            )
        if inner is None:
            inner = Config(values={}, path=f"{level.path}{key}.", notes=config.notes)
        level = inner
    level.model_type = model_type
    if not optional and level.find("num_hidden_layers") is None:
        raise UsageError(f"{level.named('num_hidden_layers')} is missing; state the side's sizes")
    level.defaults = class_defaults(model_type)
    return level


def _layers(config: Config, family: Family) -> list[Layer]:
    n = config.count("num_hidden_layers")
    if n > MAX_LAYERS:
        raise UsageError(f"{config.key('num_hidden_layers')} is {n}; no model has that many layers")
    found: list[Layer] = []
    for i, kind in enumerate(kinds_of(config, family, n)):
        found += plain_layer(config, family, i, kind)
    return found


def _encoding(layers: list[Layer]) -> list[Layer]:
    return [replace(layer, scope=Scope("none"), label="encoder") for layer in layers]


def _shape(decoder: Config, layers: list[Layer], vocab: int, other: int, tied: bool) -> Whole:
    groups, _ = gather(layers)
    shape = ModelShape(
        d_model=decoder.count("hidden_size"),
        n_layers=decoder.count("num_hidden_layers"),
        vocab_size=vocab,
        groups=groups,
        tied=tied,
        other_params=other,
        arch="encoder-decoder",
    )
    return shape, tuple(layers)


def _t5gemma(config: Config, family: Family) -> Whole:
    """Two embeddings, since the sides may differ in width; the head is the decoder's."""
    encoder, decoder = (
        _side(config, side, model_type="t5_gemma_module") for side in ("encoder", "decoder")
    )
    source = encoder.count("hidden_size")
    layers: list[Layer] = []
    for i, own in enumerate(_layers(decoder, _FIRST)):
        cross = Layer(
            attention=grouped(decoder, _FIRST, i, d_source=source),
            scope=Scope("cross", 0),
            norm_params=2 * norm_size(decoder, "rms"),
            label="decoder cross-attention",
        )
        layers += [own, cross]
    layers += _encoding(_layers(encoder, _FIRST))
    vocab = decoder.count("vocab_size")
    other = encoder.count("vocab_size") * source + source + decoder.count("hidden_size")
    return _shape(decoder, layers, vocab, other, config.flag("tie_word_embeddings", True))


def _t5gemma2(config: Config, family: Family) -> Whole:
    """One embedding for both sides and the head, with a row of its own after images."""
    text = _side(config, "encoder", "text_config", model_type="t5gemma2_text")
    decoder = _side(config, "decoder", model_type="t5gemma2_decoder")
    tower = _side(config, "encoder", "vision_config", model_type="siglip_vision_model",
                  optional=True)  # fmt: skip
    layers: list[Layer] = []
    for own in _layers(decoder, _SECOND):
        cross = replace(
            own, scope=Scope("cross", 0), weights=False, feed_forward=None, label="decoder source"
        )
        layers += [own, cross]
    layers += _encoding(_layers(text, _SECOND))
    d, seen = text.count("hidden_size"), width_of(tower)
    vision = siglip(tower) + seen * d + seen + d
    config.notes.warn("the parameters include SigLIP, which is no part of the text model")
    other, vocab = vision + d + decoder.count("hidden_size"), decoder.count("vocab_size")
    tied = config.flag("tie_word_embeddings", True)
    other += 0 if tied else (vocab + 1) * decoder.count("hidden_size")
    return _shape(decoder, layers, vocab, other, tied)


FAMILIES = {
    "t5gemma": Family(arch="encoder-decoder", whole=_t5gemma),
    "t5gemma2": Family(arch="encoder-decoder", whole=_t5gemma2),
    "t5_gemma_module": _FIRST,
    "t5gemma2_text": _SECOND,
    "t5gemma2_decoder": _SECOND,
}
