"""Encoders of BERT's make: no cache at all; parameters with the head that ``architectures`` names.

A file without ``architectures`` is counted with its masked-language head, one that names a bare
``...Model`` with its pooler instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from configurator.core.layers import ModelShape
from configurator.interop.huggingface.assemble import encodes, gather, is_bare, layers_of
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer
from configurator.interop.huggingface.rules import flagged
from configurator.interop.huggingface.scopes import every

__all__ = ["BERT", "FAMILIES", "Parts", "bert_head", "encoder_family"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an encoder holds beside its layers; sizes in values.

    ``embedding`` is everything beside the token matrix, ``head`` the masked-language head,
    ``pooler`` what a bare model has instead. ``two_biases``: an untied output matrix has a bias
    beside the head's.
    """

    embedding: Callable[[Config, int], int]
    head: Callable[[Config, int], int]
    pooler: bool = False
    narrow: bool = False
    two_biases: bool = True
    after: Callable[[Config], int] = lambda config: 0


def _build(
    parts: Parts, family: Family
) -> Callable[[Config, Family], tuple[ModelShape, tuple[Layer, ...]]]:
    def whole(config: Config, _: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
        d = config.count("hidden_size")
        width = config.count("embedding_size", d) if parts.narrow else d
        layers = layers_of(config, family)
        bare = is_bare(config)
        tied = bare or config.flag("tie_word_embeddings", True)
        other = parts.embedding(config, width) + parts.after(config)
        if bare:
            other += (d * d + d) * parts.pooler
        else:
            other += parts.head(config, width)
            other += config.count("vocab_size") * (parts.two_biases and not tied)
        groups, _states = gather(layers)
        return ModelShape(
            d_model=d,
            n_layers=config.count("num_hidden_layers"),
            vocab_size=config.count("vocab_size"),
            groups=groups,
            tied=tied,
            other_params=other,
            arch="encoder" if encodes(config, family) else "decoder",
            head=not bare,
            d_embedding=0 if width == d else width,
        ), tuple(layers)

    return whole


def _bert_embedding(config: Config, width: int) -> int:
    rows = config.count("max_position_embeddings", 512) + config.count(
        "type_vocab_size", 2, least=0
    )
    return (rows + 2) * width


def _projected(config: Config, width: int) -> int:
    """ELECTRA and ALBERT widen a narrow embedding with a projection of its own."""
    d = config.count("hidden_size")
    return _bert_embedding(config, width) + (width * d + d if width != d else 0)


def bert_head(config: Config, width: int) -> int:
    """A dense transform of the model's width to the embedding's, a norm, and the output's bias."""
    d = config.count("hidden_size")
    return d * width + width + 2 * width + config.count("vocab_size")


def _modern_embedding(config: Config, width: int) -> int:
    return 0  # the embedding's norm makes up for the one that the first layer lacks


def _modern_norm(config: Config) -> int:
    return config.count("hidden_size") * (2 if config.flag("norm_bias") else 1)


def _modern_head(config: Config, width: int) -> int:
    bias = config.flag("classifier_bias") * width
    return (
        width * width
        + bias
        + _modern_norm(config)
        + config.count("vocab_size") * config.flag("decoder_bias", True)
    )


def _modern_pattern(config: Config, n: int) -> list[str]:
    return every(config.count("global_attn_every_n_layers", 3), n, full_at=0)


BERT = Family(norm="layer", bias="all", gated=False, mlp_bias=True, arch="encoder")
_MODERN = Family(
    norm="bare",
    arch="encoder",
    mlp_bias=flagged("mlp_bias"),
    pattern=_modern_pattern,
    layer_extra=lambda c, i, kind: 2 * c.count("hidden_size") * c.flag("norm_bias"),
)
_PLAIN = Parts(embedding=_bert_embedding, head=bert_head, pooler=True)


def _no_types(config: Config, width: int) -> int:
    return (config.count("max_position_embeddings", 512) + 2) * width


def encoder_family(parts: Parts, base: Family = BERT) -> Family:
    """The family of an encoder with these parts around layers of ``base``."""
    return Family(arch="encoder", tied=True, whole=_build(parts, base))


FAMILIES = {
    "bert": encoder_family(_PLAIN),
    "roberta": encoder_family(_PLAIN),
    "camembert": encoder_family(_PLAIN),
    "xlm-roberta": encoder_family(_PLAIN),
    "ernie": encoder_family(_PLAIN),
    "electra": encoder_family(
        Parts(embedding=_projected, head=bert_head, narrow=True, two_biases=False)
    ),
    "distilbert": encoder_family(Parts(embedding=_no_types, head=bert_head, two_biases=False)),
    "modernbert": encoder_family(
        Parts(embedding=_modern_embedding, head=_modern_head, after=_modern_norm, two_biases=False),
        _MODERN,
    ),
    "eurobert": Family(
        arch="encoder",
        mlp_bias=flagged("mlp_bias"),
        extra=lambda c: c.count("vocab_size") * c.flag("mlp_bias") * (not is_bare(c)),
    ),
}
