"""Encoders that differ from BERT in a thing or two: positions, norms, shared weights."""

from __future__ import annotations

from dataclasses import replace

from configurator.core.kinds import Attention
from configurator.core.layers import ModelShape
from configurator.interop.huggingface.assemble import gather
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.families.encoders import (
    BERT,
    Parts,
    bert_head,
    encoder_family,
)
from configurator.interop.huggingface.family import Family, Layer

__all__ = ["FAMILIES"]


def _rows(config: Config) -> int:
    return config.count("max_position_embeddings", 512)


def _types(config: Config, default: int = 2) -> int:
    return config.count("type_vocab_size", default, least=0)


def _positions_only(config: Config, width: int) -> int:
    return (_rows(config) + 2) * width


def _unnormed(config: Config, width: int) -> int:
    """Megatron's BERT norms before each block, and not after the embedding."""
    return (_rows(config) + _types(config)) * width


def _typed(config: Config, width: int) -> int:
    return (_types(config) + 2) * width


def _rotary(config: Config, width: int) -> int:
    """RoFormer keeps its sines in a matrix of one head's width, and widens a narrow embedding."""
    d = config.count("hidden_size")
    head = d // config.count("num_attention_heads")
    wider = width * d + d if width != d else 0
    return _typed(config, width) + _rows(config) * head + wider


def _mpnet(config: Config, width: int) -> int:
    biases = config.count("relative_attention_num_buckets", 32)
    return _positions_only(config, width) + biases * config.count("num_attention_heads")


def _output_bias(config: Config, width: int) -> int:
    return config.count("vocab_size")


# ---- DeBERTa: positions relative to each other, projected on their own where not shared


def _pairs(config: Config) -> list[str]:
    """Which of content and position attend to each other: a list, or names joined by ``|``."""
    value = config.values.get("pos_att_type")
    if isinstance(value, str):
        return [name.strip() for name in value.lower().split("|")]
    return config.words("pos_att_type") or []


def _relative(config: Config) -> bool:
    return config.flag("relative_attention")


def _span(config: Config) -> int:
    """Positions on either side: buckets if there are any, else the longest distance."""
    buckets = config.values.get("position_buckets")
    if isinstance(buckets, int) and buckets > 0:
        return config.count("position_buckets")
    longest = config.values.get("max_relative_positions")
    if isinstance(longest, int) and longest > 0:
        return config.count("max_relative_positions")
    return _rows(config)


def _deberta_embedding(config: Config, width: int) -> int:
    d = config.count("hidden_size")
    rows = _rows(config) if config.flag("position_biased_input", True) else 0
    total = (rows + _types(config, 0) + 2) * width + (width * d if width != d else 0)
    if _relative(config):
        total += 2 * _span(config) * d
    norm = config.values.get("norm_rel_ebd")
    return total + 2 * d * (isinstance(norm, str) and "layer_norm" in norm.lower())


def _deberta2_embedding(config: Config, width: int) -> int:
    d = config.count("hidden_size")
    size = config.maybe("conv_kernel_size", least=0) or 0
    groups = config.count("conv_groups", 1)
    convolution = d * (d // groups) * size + d + 2 * d if size else 0
    return _deberta_embedding(config, width) + convolution


def _deberta2(config: Config, family: Family, i: int, kind: str) -> Attention:
    d, extra = config.count("hidden_size"), 0
    if _relative(config) and not config.flag("share_att_key"):
        extra = sum(d * d + d for name in ("c2p", "p2c") if name in _pairs(config))
    return grouped(config, family, i, other_params=extra)


def _deberta(config: Config, family: Family, i: int, kind: str) -> Attention:
    """Queries, keys and values in one matrix; queries and values have biases, keys have none."""
    d, heads = config.count("hidden_size"), config.count("num_attention_heads")
    extra = 2 * d + 2 * heads * heads * config.flag("talking_head")
    if _relative(config):
        pairs = _pairs(config)
        extra += d * d * ("c2p" in pairs) + (d * d + d) * ("p2c" in pairs)
    return grouped(config, family, i, bias="o", other_params=extra)


# ---- ALBERT: the same layers again and again


def _albert(config: Config, family: Family) -> tuple[ModelShape, tuple[Layer, ...]]:
    """Weights of each group of layers are counted where the group is first used."""
    whole = _NARROW.whole
    if whole is None:
        raise ValueError("encoders are read as a whole")
    shape, layers = whole(config, family)
    own = config.count("num_hidden_groups", 1) * config.count("inner_group_num", 1)
    inner = config.count("inner_group_num", 1)
    repeated = tuple(replace(layer, weights=i < own) for i, layer in enumerate(layers * inner))
    groups, _ = gather(repeated)
    return replace(shape, groups=groups), repeated


def _widened(config: Config, width: int) -> int:
    d = config.count("hidden_size")
    return (_rows(config) + _types(config) + 2) * width + width * d + d


_NARROW = encoder_family(Parts(embedding=_widened, head=bert_head, narrow=True, pooler=True))
_PLAIN_GATED = Family(norm="layer", bias="none", arch="encoder")


def _attention(build: object) -> Family:
    return replace(BERT, attention=build)  # type: ignore[arg-type]


FAMILIES = {
    "albert": Family(arch="encoder", tied=True, whole=_albert),
    "bert-generation": encoder_family(Parts(embedding=_positions_only, head=_output_bias)),
    "deberta": encoder_family(
        Parts(embedding=_deberta_embedding, head=bert_head), _attention(_deberta)
    ),
    "deberta-v2": encoder_family(
        Parts(embedding=_deberta2_embedding, head=bert_head), _attention(_deberta2)
    ),
    "megatron-bert": encoder_family(
        Parts(embedding=_unnormed, head=bert_head, pooler=True,
              after=lambda c: 2 * c.count("hidden_size"))
    ),
    "mpnet": encoder_family(Parts(embedding=_mpnet, head=bert_head, pooler=True)),
    "nomic_bert": encoder_family(
        Parts(embedding=_typed, head=bert_head), _PLAIN_GATED
    ),
    "roformer": encoder_family(Parts(embedding=_rotary, head=bert_head, narrow=True)),
}  # fmt: skip
