"""Encoder-decoders: T5's and BART's make, Whisper, Moonshine. The source is cached once.

A decoder layer keeps two caches: its own tokens, which grow, and the source's keys and values,
which are written once. Encoder layers keep nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward, ModelShape, Scope
from configurator.interop.huggingface.assemble import gather, is_bare
from configurator.interop.huggingface.attention import check_heads
from configurator.interop.huggingface.config import MAX_LAYERS, Config
from configurator.interop.huggingface.family import Family, Layer
from configurator.interop.huggingface.rules import feed_forward_proj_gated

__all__ = ["FAMILIES", "Stack", "compose", "layer_count", "shape_of", "side_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One side: its layers, its attention and feed-forward, and the size of one norm."""

    layers: int
    attention: GroupedQuery
    feed_forward: FeedForward
    norm: int


def compose(
    encoder: Stack, decoder: Stack, *, cross: GroupedQuery | None = None, source: int = 0
) -> list[Layer]:
    """Decoder layers with their two caches, then encoder layers with none."""
    own = Layer(
        attention=decoder.attention,
        scope=Scope("full"),
        feed_forward=decoder.feed_forward,
        norm_params=2 * decoder.norm,
        label="decoder self-attention",
    )
    other = Layer(
        attention=cross or decoder.attention,
        scope=Scope("cross", source),
        norm_params=decoder.norm,
        label="decoder cross-attention",
    )
    encodes = Layer(
        attention=encoder.attention,
        scope=Scope("none"),
        feed_forward=encoder.feed_forward,
        norm_params=2 * encoder.norm,
        label="encoder",
    )
    return [own, other] * decoder.layers + [encodes] * encoder.layers


def shape_of(
    config: Config,
    layers: list[Layer],
    *,
    n_layers: int,
    other: int,
    tied: bool,
    three_embeddings: bool = False,
) -> tuple[ModelShape, tuple[Layer, ...]]:
    """The model around its layers; an untied class may hold a shared and two more embeddings."""
    groups, _ = gather(layers)
    if three_embeddings and not tied:
        other += 2 * config.count("vocab_size") * config.count("hidden_size")
    shape = ModelShape(
        d_model=config.count("hidden_size"),
        n_layers=n_layers,
        vocab_size=config.count("vocab_size"),
        groups=groups,
        tied=tied,
        other_params=other,
        arch="encoder-decoder",
    )
    return shape, tuple(layers)


def layer_count(config: Config, *names: str) -> int:
    """The number of layers under the first of ``names`` that the file states."""
    for name in names:
        value = config.maybe(name)
        if value is not None:
            if value > MAX_LAYERS:
                raise UsageError(f"{config.named(name)} is {value}; no model has that many layers")
            return value
    raise UsageError(f"{config.named(names[0])} is missing; state the number of layers")


# ---- T5


def _t5(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
    d, heads = config.count("hidden_size"), config.count("num_heads")
    attention = GroupedQuery(
        d_model=d, n_heads=heads, n_kv_heads=heads, d_head=config.count("d_kv", 64)
    )
    ff = FeedForward(
        d_model=d, d_ff=config.count("intermediate_size"), gated=feed_forward_proj_gated(config)
    )
    encoder = layer_count(config, "num_layers", "num_hidden_layers")
    if is_bare(config, "EncoderModel"):
        return _t5_encoder(config, attention, ff, encoder)
    decoder = config.maybe("num_decoder_layers") or encoder
    layers = compose(
        Stack(layers=encoder, attention=attention, feed_forward=ff, norm=d),
        Stack(layers=decoder, attention=attention, feed_forward=ff, norm=d),
    )
    config.notes.source_default = config.maybe("n_positions") or 0
    tied = config.flag("tie_word_embeddings", True)
    if not tied:
        config.notes.warn(
            "transformers 5.24 ties the output head of T5 whatever the file says; released "
            "weights of untied files hold a head of their own, and so does this count"
        )
    buckets = config.count("relative_attention_num_buckets", 32) * heads
    each_layer = config.model_type == "umt5"
    biases = buckets * (encoder + decoder if each_layer else 2)
    return shape_of(
        config, layers, n_layers=decoder, other=2 * d + biases, tied=tied
    )  # fmt: skip


def _t5_encoder(
    config: Config, attention: GroupedQuery, ff: FeedForward, n: int
) -> tuple[ModelShape, tuple[Layer, ...]]:
    """The encoder alone, as ``T5EncoderModel`` has it: no cache and no output head."""
    d = config.count("hidden_size")
    layer = Layer(
        attention=attention, scope=Scope("none"), feed_forward=ff, norm_params=2 * d,
        label="encoder",
    )  # fmt: skip
    buckets = config.count("relative_attention_num_buckets", 32) * int(attention.n_heads)
    biases = buckets * (n if config.model_type == "umt5" else 1)
    shape, layers = shape_of(config, [layer] * n, n_layers=n, other=d + biases, tied=True)
    return replace(shape, arch="encoder", head=False), layers


# ---- BART and its relatives


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bart:
    """``spare`` rows of positions beside the stated ones; ``None``: positions are not weights."""

    spare: int | None = 0
    embedding_norm: bool = False
    final_norm: bool = False


def side_of(config: Config, side: str, gated: bool = False, **attention: Any) -> Stack:
    """One side by keys that begin with its name, as BART and its relatives state them."""
    d = config.count("hidden_size")
    heads = config.count(f"{side}_attention_heads")
    if d % heads:
        raise UsageError(
            f"{config.key('hidden_size')} {d} is not a multiple of {side}_attention_heads {heads}"
        )
    kv = config.maybe(f"{side}_num_key_value_heads") or heads
    check_heads(config, heads, kv)
    return Stack(
        layers=layer_count(
            config, f"{side}_layers", f"{side}_num_hidden_layers", "num_hidden_layers"
        ),
        attention=GroupedQuery(
            d_model=d, n_heads=heads, n_kv_heads=kv, d_head=d // heads, **attention
        ),
        feed_forward=FeedForward(
            d_model=d, d_ff=config.count(f"{side}_ffn_dim"), gated=gated, bias=True
        ),
        norm=2 * d,
    )


def _bart(kind: _Bart) -> Any:
    def whole(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
        d = config.count("hidden_size")
        encoder, decoder = (side_of(config, side, bias="all") for side in ("encoder", "decoder"))
        rows = config.count("max_position_embeddings", 1024)
        positions = 0 if kind.spare is None else 2 * (rows + kind.spare) * d
        norms = 2 * 2 * d * (kind.embedding_norm + kind.final_norm)
        config.notes.source_default = rows
        layers = compose(encoder, decoder)
        source = _source_vocabulary(config)
        prompts = _prompts(config, decoder.layers)
        return shape_of(
            config, layers, n_layers=decoder.layers, other=positions + norms + source + prompts,
            tied=config.flag("tie_word_embeddings", True), three_embeddings=not source,
        )  # fmt: skip

    return whole


def _prompts(config: Config, layers: int) -> int:
    """MVP's learned prompts of the decoder's own and crossing attention.

    The class of transformers 5.24 never gives the encoder the prompts that it has code for.
    """
    if config.model_type != "mvp" or not config.flag("use_prompt"):
        return 0
    d, middle = config.count("hidden_size"), config.count("prompt_mid_dim", 800)
    rows = config.count("prompt_length", 100) * d
    return 2 * (rows + (d + 1) * middle + (middle + 1) * 2 * d * layers)


def _source_vocabulary(config: Config) -> int:
    """Weights of the encoder's own embedding where the decoder has another one (Marian)."""
    if config.flag("share_encoder_decoder_embeddings", True):
        return 0
    source = config.count("vocab_size")
    target = config.maybe("decoder_vocab_size") or source
    config.values = {**config.values, "vocab_size": target}
    return source * config.count("hidden_size")


# ---- FSMT: two vocabularies; Speech2Text: convolutions instead of a source vocabulary


def _fsmt(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
    d = config.count("hidden_size")
    encoder, decoder = (side_of(config, side, bias="all") for side in ("encoder", "decoder"))
    source, target = (config.count(f"{name}_vocab_size") for name in ("src", "tgt"))
    rows = config.count("max_position_embeddings", 1024)
    rows += config.count("pad_token_id", 1, least=0) + 1  # positions count from the padding on
    config.notes.source_default = config.count("max_position_embeddings", 1024)
    config.values = {**config.values, "vocab_size": target}
    tied = config.flag("tie_word_embeddings")  # then the encoder reads the target's embedding
    return shape_of(
        config, compose(encoder, decoder), n_layers=decoder.layers,
        other=source * d * (not tied) + 2 * rows * d, tied=tied,
    )  # fmt: skip


def _speech_to_text(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
    d, middle = config.count("hidden_size"), config.count("conv_channels", 1024)
    encoder, decoder = (side_of(config, side, bias="all") for side in ("encoder", "decoder"))
    sizes = config.wholes("conv_kernel_sizes") or [5, 5]
    width = config.count("input_feat_per_channel", 80) * config.count("input_channels", 1)
    convolutions = 0
    for i, size in enumerate(sizes):  # each is gated, so it gives half of its channels
        out = middle if i < len(sizes) - 1 else 2 * d
        convolutions += width * out * size + out
        width = out // 2
    config.notes.source_default = config.count("max_source_positions", 6000) >> len(sizes)
    return shape_of(
        config, compose(encoder, decoder), n_layers=decoder.layers,
        other=convolutions + 2 * 2 * d, tied=config.flag("tie_word_embeddings", True),
    )  # fmt: skip


# ---- Whisper: keys without biases, 30 s of sound are always 1,500 positions


def _whisper(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
    d, mels = config.count("hidden_size"), config.count("num_mel_bins")
    encoder, decoder = (
        side_of(config, side, other_params=3 * d) for side in ("encoder", "decoder")
    )
    source = config.count("max_source_positions", 1500)
    target = config.count("max_target_positions", 448)
    convolutions = 3 * mels * d + d + 3 * d * d + d
    config.notes.source_fixed = True
    layers = compose(encoder, decoder, source=source)
    return shape_of(
        config, layers, n_layers=decoder.layers,
        other=convolutions + (source + target) * d + 2 * 2 * d,
        tied=config.flag("tie_word_embeddings", True),
    )  # fmt: skip


def _t5_family() -> Family:
    return Family(arch="encoder-decoder", whole=_t5)


FAMILIES = {
    "t5": _t5_family(),
    "mt5": _t5_family(),
    "umt5": _t5_family(),
    "fsmt": Family(arch="encoder-decoder", whole=_fsmt),
    "speech_to_text": Family(arch="encoder-decoder", whole=_speech_to_text),
    "whisper": Family(arch="encoder-decoder", whole=_whisper),
    **{
        name: Family(arch="encoder-decoder", whole=_bart(kind))
        for name, kind in {
            "bart": _Bart(spare=2, embedding_norm=True),
            "mbart": _Bart(spare=2, embedding_norm=True, final_norm=True),
            "mvp": _Bart(spare=2, embedding_norm=True),
            "plbart": _Bart(spare=2, embedding_norm=True),
            "pegasus": _Bart(final_norm=True),
            "marian": _Bart(),
            "blenderbot": _Bart(final_norm=True),
            "blenderbot-small": _Bart(embedding_norm=True),
            "m2m_100": _Bart(spare=None, final_norm=True),
        }.items()
    },
}
