"""Encoder-decoders for long sources: LED, BigBird-Pegasus, Pegasus-X and LongT5.

Only the encoders differ from BART and T5, and encoders keep no cache.
"""

from __future__ import annotations

from dataclasses import replace

from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import ModelShape
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.families.encoder_decoder import (
    FAMILIES as SHORT,
)
from configurator.interop.huggingface.families.encoder_decoder import (
    Stack,
    compose,
    shape_of,
    side_of,
)
from configurator.interop.huggingface.family import Family, Layer

__all__ = ["FAMILIES"]

Whole = tuple[ModelShape, tuple[Layer, ...]]


def _with(stack: Stack, **attention: object) -> Stack:
    changed: GroupedQuery = replace(stack.attention, **attention)  # type: ignore[arg-type]
    return replace(stack, attention=changed)


def _tied(config: Config) -> bool:
    return config.flag("tie_word_embeddings", True)


def _led(config: Config, family: Family) -> Whole:
    """A second set of query, key and value projections for tokens that attend to everything."""
    d = config.count("hidden_size")
    encoder, decoder = (side_of(config, side, bias="all") for side in ("encoder", "decoder"))
    encoder = _with(encoder, other_params=3 * (d * d + d))
    source = config.count("max_encoder_position_embeddings", 16384)
    target = config.count("max_decoder_position_embeddings", 1024)
    config.notes.source_default = source
    return shape_of(
        config, compose(encoder, decoder), n_layers=decoder.layers,
        other=(source + target) * d + 2 * 2 * d, tied=_tied(config), three_embeddings=True,
    )  # fmt: skip


def _bigbird(config: Config, family: Family) -> Whole:
    bias = "all" if config.flag("use_bias") else "none"
    encoder, decoder = (side_of(config, side, bias=bias) for side in ("encoder", "decoder"))
    d, rows = config.count("hidden_size"), config.count("max_position_embeddings", 4096)
    config.notes.source_default = rows
    return shape_of(
        config, compose(encoder, decoder), n_layers=decoder.layers,
        other=2 * rows * d + 2 * 2 * d, tied=_tied(config), three_embeddings=True,
    )  # fmt: skip


def _pegasus_x(config: Config, family: Family) -> Whole:
    """Global tokens beside the text, with a norm of their own in each encoder layer."""
    d = config.count("hidden_size")
    encoder, decoder = (side_of(config, side, bias="none") for side in ("encoder", "decoder"))
    encoder = _with(encoder, other_params=2 * d)
    config.notes.source_default = config.count("max_position_embeddings", 16384)
    tokens = config.count("num_global_tokens", 32)
    return shape_of(
        config, compose(encoder, decoder), n_layers=decoder.layers,
        other=tokens * d + 2 * 2 * d, tied=_tied(config), three_embeddings=True,
    )  # fmt: skip


def _longt5(config: Config, family: Family) -> Whole:
    """T5; with transient global attention one more norm a layer and one more table of biases."""
    t5 = SHORT["t5"].whole
    if t5 is None:
        raise ValueError("T5 is read as a whole")
    shape, layers = t5(config, family)
    if config.text("encoder_attention_type") != "transient-global":
        return shape, layers
    d = int(shape.d_model)
    heads = config.count("num_heads")
    biases = config.count("relative_attention_num_buckets", 32) * heads
    encoders = sum(layer.label == "encoder" for layer in layers)
    return replace(shape, other_params=shape.other_params + biases + encoders * d), layers


FAMILIES = {
    "led": Family(arch="encoder-decoder", whole=_led),
    "bigbird_pegasus": Family(arch="encoder-decoder", whole=_bigbird),
    "pegasus_x": Family(arch="encoder-decoder", whole=_pegasus_x),
    "longt5": Family(arch="encoder-decoder", whole=_longt5),
}
