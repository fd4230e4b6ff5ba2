"""Encoder-decoders with experts in some layers: Switch Transformers and NLLB-MoE."""

from __future__ import annotations

from dataclasses import replace

from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward, ModelShape
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.families.encoder_decoder import (
    Stack,
    compose,
    layer_count,
    shape_of,
    side_of,
)
from configurator.interop.huggingface.family import Family, Layer

__all__ = ["FAMILIES"]

Whole = tuple[ModelShape, tuple[Layer, ...]]


def _experts(config: Config, dense: FeedForward, visited: int) -> FeedForward:
    experts = config.count("num_experts", least=0)
    if not experts:
        return replace(dense, d_ff=0, bias=False)
    router = int(dense.d_model) * experts + experts * config.flag("router_bias")
    return replace(
        dense, n_experts=experts, experts_per_token=min(visited, experts), router_params=router
    )


def _sparse(layers: list[Layer], label: str, sparse: list[int], experts: FeedForward) -> None:
    """Give the layers with this label and one of these places experts, in place."""
    places = [i for i, layer in enumerate(layers) if layer.label == label]
    for n in sparse:
        layers[places[n]] = replace(layers[places[n]], feed_forward=experts)


def _switch(config: Config, family: Family) -> Whole:
    """One expert a token, in ``num_sparse_*_layers`` layers at equal steps from the second on."""
    d, heads = config.count("hidden_size"), config.count("num_heads")
    attention = GroupedQuery(
        d_model=d, n_heads=heads, n_kv_heads=heads, d_head=config.count("d_kv", 64)
    )
    ff = FeedForward(d_model=d, d_ff=config.count("intermediate_size"), gated=False)
    encoders = layer_count(config, "num_layers", "num_hidden_layers")
    decoders = config.maybe("num_decoder_layers") or encoders
    layers = compose(
        Stack(layers=encoders, attention=attention, feed_forward=ff, norm=d),
        Stack(layers=decoders, attention=attention, feed_forward=ff, norm=d),
    )
    experts = _experts(config, ff, 1)
    for label, side, n in (
        ("encoder", "encoder", encoders),
        ("decoder self-attention", "decoder", decoders),
    ):
        wanted = config.count(f"num_sparse_{side}_layers", 3, least=0)
        step = n // wanted if wanted else n
        sparse = [i for i in range(n) if step and (i % step == 1 or step == 1)]
        _sparse(layers, label, sparse, experts)
    biases = config.count("relative_attention_num_buckets", 32) * heads
    return shape_of(
        config, layers, n_layers=decoders, other=2 * d + 2 * biases,
        tied=config.flag("tie_word_embeddings", True), three_embeddings=True,
    )  # fmt: skip


def _nllb(config: Config, family: Family) -> Whole:
    """M2M-100 with two experts a token in every ``*_sparse_step``-th layer."""
    encoder, decoder = (side_of(config, side, bias="all") for side in ("encoder", "decoder"))
    layers = compose(encoder, decoder)
    for label, side, stack in (
        ("encoder", "encoder", encoder),
        ("decoder self-attention", "decoder", decoder),
    ):
        step = config.count(f"{side}_sparse_step", 4, least=0)
        sparse = [i for i in range(stack.layers) if step and (i + 1) % step == 0]
        _sparse(layers, label, sparse, _experts(config, stack.feed_forward, 2))
    config.notes.source_default = config.count("max_position_embeddings", 1024)
    return shape_of(
        config, layers, n_layers=decoder.layers, other=2 * 2 * config.count("hidden_size"),
        tied=config.flag("tie_word_embeddings", True), three_embeddings=True,
    )  # fmt: skip


FAMILIES = {
    "switch_transformers": Family(arch="encoder-decoder", whole=_switch),
    "nllb-moe": Family(arch="encoder-decoder", whole=_nllb),
}
