"""A model type that is not known is read from its keys, and every assumption is said."""

from __future__ import annotations

from configurator.interop.config_file import show
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.rules import flagged, full_every, picks, tail_windows
from configurator.interop.huggingface.scopes import CHUNK, FULL, LINEAR, WINDOW, window_size

__all__ = ["UNKNOWN", "describe"]

# Keys that change what is cached in the families that have them, and are not applied here.
_CHANGE_THE_CACHE = (
    "multi_query", "use_cla", "num_kv_shared_layers", "swa_num_key_value_heads", "swa_head_dim",
    "global_head_dim", "num_global_key_value_heads", "compress_ratios", "block_configs",
    "num_key_value_heads_per_layer",
)  # fmt: skip


def _pattern(config: Config, n: int) -> list[str]:
    """Layers by whichever schedule the file states, all alike where it states none.

    Layers without attention keep a state that is not known, so a hybrid is refused later on.
    """
    full = _attention_layers(config, n)
    if full is not None:
        return [FULL if i in full else LINEAR for i in range(n)]
    local = config.wholes("hybrid_layer_pattern")
    if local is not None and len(local) == n:
        return [WINDOW if each else FULL for each in local]
    if config.maybe("attention_chunk_size"):
        rotates = config.per_layer("no_rope_layers", n, least=0) or [1] * n
        return [CHUNK if each else FULL for each in rotates]
    if not window_size(config):
        return [FULL] * n
    if config.has("sliding_window_pattern"):
        return full_every("sliding_window_pattern", 0)(config, n)
    if config.flag("use_sliding_window") and config.has("max_window_layers"):
        return tail_windows(config, n)
    return [WINDOW] * n


def _attention_layers(config: Config, n: int) -> set[int] | None:
    """Layers that attend where the others do not, by the keys that hybrids state; else ``None``."""
    kinds = config.wholes("attn_type_list")
    if kinds is not None:
        return {i for i, kind in enumerate(kinds) if kind == 1}
    for name in ("full_attn_idxs", "attn_layer_indices"):
        listed = config.wholes(name)
        if listed is not None:
            return set(listed)
    inner = config.section("linear_attn_config")
    if inner is not None:
        return {i - 1 for i in inner.wholes("full_attn_layers", 1) or ()}
    if config.has("attn_layer_period"):
        period, offset = config.count("attn_layer_period"), config.maybe("attn_layer_offset", 0)
        return {i for i in range(n) if i % period == (offset or 0)}
    if config.has("full_attention_interval"):
        period = config.count("full_attention_interval")
        return {i for i in range(n) if (i + 1) % period == 0}
    return None


UNKNOWN = Family(
    known=False,
    pattern=_pattern,
    qk_norm=picks("use_qk_norm", "head", "none"),
    mlp_bias=flagged("mlp_bias"),
    mixture=Mixture(shared="count"),
)


def describe(config: Config) -> None:
    """Warn that the family is not known, and say what its keys do not settle."""
    name = "the file states no model_type"
    if config.model_type:
        name = f"model_type {show(config.model_type)} is not known"
    assumed = ["a gated feed-forward", "two RMS norms a layer", "one norm at the end"]
    if not config.has("num_key_value_heads"):
        assumed.append("as many KV heads as query heads")
    if not config.has("head_dim") and not config.has("kv_lora_rank"):
        assumed.append("a head width of hidden_size / heads")
    if not config.has("attention_bias"):
        assumed.append("no biases")
    if not config.has("tie_word_embeddings"):
        assumed.append("an output head of its own")
    ignored = [key for key in _CHANGE_THE_CACHE if config.values.get(key)]
    if ignored:
        config.notes.warn(
            f"{', '.join(map(config.named, ignored))}: changes the cache in families that have "
            f"it, and is not applied to a type that is not known"
        )
    config.notes.warn(
        f"{name}: read from its keys, with {', '.join(assumed)}; check the "
        f"parameters before relying on them"
    )
