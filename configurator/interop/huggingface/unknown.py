"""A model type that is not known is read from its keys, and every assumption is said."""

from __future__ import annotations

import re

from configurator.core.errors import UsageError, show
from configurator.core.kinds import Attention
from configurator.interop.huggingface.assemble import crossing, norm_size, plain_layer
from configurator.interop.huggingface.attention import grouped, heads_of, is_latent, latent
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer, Mixture
from configurator.interop.huggingface.rules import (
    at_offset,
    flagged,
    full_every,
    picks,
    tail_windows,
)
from configurator.interop.huggingface.scopes import (
    CHUNK,
    FULL,
    INDEXED,
    LINEAR,
    WINDOW,
    window_size,
)

__all__ = ["UNKNOWN", "describe"]

# Keys that change what is cached in the families that have them, and are not applied here.
_CHANGE_THE_CACHE = (
    "multi_query", "use_cla", "num_kv_shared_layers", "swa_num_key_value_heads", "swa_head_dim",
    "global_head_dim", "num_global_key_value_heads", "compress_ratios", "block_configs",
    "num_key_value_heads_per_layer", "window_size", "attention_window", "local_attention",
    "local_window_size", "sliding_window_layers", "swa_layers", "full_attention_layers",
    "kv_share_factor", "kv_reuse_group", "cross_attention_layers",
)  # fmt: skip
# Keys that by their names state KV heads, whatever the family calls them.
_LIKE_KV_HEADS = re.compile(r"(kv|key_?value).*(head|group)|head.*kv|query_group", re.IGNORECASE)
# Sections that hold keys which stand at the top of other files.
_SECTIONS = ("attn_config", "ffn_config", "moe", "moe_config")
_LETTERS = {"*": FULL, "-": "mlp", "E": "moe"}  # and M, a recurrent layer
_RECURRENT = ("mamba_", "ssm_", "linear_attn", "lru_", "rwkv_", "mlstm_", "conv_L_cache")
# Types without attention whose files state heads: RWKV, xLSTM and those of flash-linear-attention.
_NO_CACHE = re.compile(
    r"rwkv|xlstm|retnet|hgrn|(gla|gsa|abc|kda)$|(gated_?)?delta_?(net|product)|linear_attn|lightnet"
)
_ENCODERS = ("encoder_layers", "encoder_num_hidden_layers", "num_encoder_layers")


def _pattern(config: Config, n: int) -> list[str]:
    """Layers by whichever schedule the file states, all alike where it states none.

    Layers without attention keep a state that is not known, so a hybrid is refused later on.
    """
    letters = config.text("hybrid_override_pattern")
    if letters and len(letters) == n:
        return [_LETTERS.get(letter, LINEAR) for letter in letters]
    full = _attention_layers(config, n)
    if full is not None:
        return [FULL if i in full else LINEAR for i in range(n)]
    local = config.per_layer("hybrid_layer_pattern", n, least=0)
    if local is not None:
        return [WINDOW if each else FULL for each in local]
    if config.maybe("attention_chunk_size"):
        every = config.maybe("no_rope_layer_interval")
        rotates = config.per_layer("no_rope_layers", n, least=0) or [
            int(every is None or (i + 1) % every != 0) for i in range(n)
        ]
        return [CHUNK if each else FULL for each in rotates]
    if not window_size(config):
        return [FULL] * n
    if config.has("global_attn_every_n_layers"):
        return full_every("global_attn_every_n_layers", 0)(config, n)
    if config.has("sliding_window_pattern"):
        return full_every("sliding_window_pattern", 0)(config, n)
    if config.flag("use_sliding_window") and config.has("max_window_layers"):
        return tail_windows(config, n)
    return [WINDOW] * n


def _attention_layers(config: Config, n: int) -> set[int] | None:
    """Layers that attend where the others do not, by the keys that hybrids state; else ``None``."""
    kinds = config.per_layer("attn_type_list", n, least=0)
    if kinds is not None:
        return {i for i, kind in enumerate(kinds) if kind == 1}
    for name in ("full_attn_idxs", "attn_layer_indices"):
        listed = config.indices(name, n)
        if listed is not None:
            return listed
    if config.has("layer_group_size"):  # Ling's: attention at the end of each group
        period = config.count("layer_group_size")
        return {i for i in range(n) if (i + 1) % period == 0}
    inner = config.section("linear_attn_config")
    if inner is not None:
        return inner.indices("full_attn_layers", n, 1) or set()
    if config.has("attn_layer_period"):
        return set(filter(at_offset(config, 1, 0), range(n)))
    if config.has("full_attention_interval"):
        period = config.count("full_attention_interval")
        return {i for i in range(n) if (i + 1) % period == 0}
    return None


def _attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    if is_latent(config):
        return latent(config, family, i, indexed=kind == INDEXED or config.has("index_head_dim"))
    value = config.maybe("v_head_dim") or 0
    return grouped(config, family, i, kv_heads=_kv_heads(config, i), v_head_dim=value)


def _kv_heads(config: Config, i: int) -> int | None:
    """KV heads that a flag settles; ``None`` where the usual keys count."""
    if config.has("group_query_attention") and not config.flag("group_query_attention"):
        return heads_of(config, i)  # Megatron reads its number of groups only with the flag
    if config.flag("multi_query") and not config.has("num_key_value_heads"):
        return 1
    return None


def _layers(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    """A plain layer, and in the decoder of an encoder-decoder its attention to the source."""
    found = plain_layer(config, family, i, kind)
    if len(found) > 1 or found[0].attention is None or not _has_encoder(config):
        return found
    return [*found, crossing(found[0], norm_size(config, family.norm))]


def _has_encoder(config: Config) -> bool:
    if config.has("is_encoder_decoder"):
        return config.flag("is_encoder_decoder")
    return any(config.maybe(name, least=0) for name in _ENCODERS)


UNKNOWN = Family(
    known=False,
    attention=_attention,
    layers=_layers,
    pattern=_pattern,
    qk_norm=picks("use_qk_norm", "head", "none"),
    mlp_bias=flagged("mlp_bias"),
    mixture=Mixture(shared="stated", dense_at_zero=True),
)


def describe(config: Config) -> None:
    """Warn that the family is not known, and say what its keys do not settle."""
    if _NO_CACHE.match(config.model_type):
        raise UsageError(
            f"model_type {show(config.model_type)} keeps a recurrent state in place of a cache; "
            f"its size is not known here, and there is no KV cache to count"
        )
    _lift(config)
    name = "the file states no model_type"
    if config.model_type:
        name = f"model_type {show(config.model_type)} is not known"
    assumed = ["a gated feed-forward", "two RMS norms a layer", "one norm at the end"]
    if not config.has("num_key_value_heads") and not config.flag("multi_query"):
        assumed.append("as many KV heads as query heads")
    if not config.has("head_dim") and not config.has("kv_lora_rank"):
        assumed.append("a head width of hidden_size / heads")
    if not config.has("attention_bias"):
        assumed.append("no biases")
    if not config.has("tie_word_embeddings"):
        assumed.append("an output head of its own")
    ignored = [key for key in _CHANGE_THE_CACHE if config.values.get(key)]
    if not config.has("num_key_value_heads"):
        ignored = [key for key in ignored if key != "multi_query"]
        ignored += [
            key
            for key, value in config.values.items()
            if type(value) is int and _LIKE_KV_HEADS.search(key) and key not in ignored
        ]
    if ignored:
        config.notes.warn(
            f"{', '.join(map(config.named, ignored))}: changes the cache in families that have "
            f"it, and is not applied to a type that is not known"
        )
    states = [key for key in config.values if str(key).startswith(_RECURRENT)]
    if states:
        config.notes.warn(
            f"{config.named(states[0])}: layers that keep a state in place of a cache are not "
            f"read for a type that is not known; the cache may be smaller, and the state is not "
            f"counted"
        )
    config.notes.warn(
        f"{name}: read from its keys, with {', '.join(assumed)}; check the "
        f"parameters before relying on them"
    )


def _lift(config: Config) -> None:
    """Give keys of sections, and those of a decoder beside its encoder, their usual places."""
    for name in _SECTIONS:
        inner = config.values.get(name)
        if isinstance(inner, dict):
            config.values = {**inner, **config.values}
    if not _has_encoder(config):
        return
    names = {
        "num_hidden_layers": "decoder_layers",
        "num_attention_heads": "decoder_attention_heads",
        "intermediate_size": "decoder_ffn_dim",
    }
    given = {usual: config.values.get(key) for usual, key in names.items()}
    config.values = {**config.values, **{k: v for k, v in given.items() if v is not None}}
    config.notes.unknown.append("what its encoder holds")
    config.notes.source_default = config.maybe("max_source_positions") or 0
