"""A model type that is not known is read from its keys, and every assumption is said."""

from __future__ import annotations

from configurator.interop.config_file import show
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.rules import flagged, picks

__all__ = ["UNKNOWN", "describe"]

UNKNOWN = Family(
    known=False,
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
    config.notes.warn(
        f"{name}: read from its keys, with {', '.join(assumed)}; check the "
        f"parameters before relying on them"
    )
