"""Decoders that look at an image through cross-attention layers: Llama 3.2 Vision."""

from __future__ import annotations

from configurator.core.layers import Scope
from configurator.interop.huggingface.assemble import norm_size
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer
from configurator.interop.huggingface.feed_forward import dense
from configurator.interop.huggingface.scopes import FULL

__all__ = ["FAMILIES"]


def _cross_layers(config: Config) -> set[int]:
    listed = config.indices("cross_attention_layers", config.count("num_hidden_layers"))
    return {3, 8, 13, 18, 23, 28, 33, 38} if listed is None else listed


def _layer(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    norms = 2 * norm_size(config, "rms")
    ff = dense(config, family, i)
    if i not in _cross_layers(config):
        attention = grouped(config, family, i)
        return [Layer(attention=attention, scope=Scope("full"), feed_forward=ff, norm_params=norms)]
    return [
        Layer(
            attention=grouped(config, family, i, qk_norm="head"),
            scope=Scope("cross", 0),
            feed_forward=ff,
            norm_params=norms,
            other_params=2,  # one gate for the attention, one for the feed-forward
            label="cross-attention to the image",
        )
    ]


def _more_rows(config: Config) -> int:
    """The embedding has eight rows for image tokens that the output head lacks."""
    return 8 * config.count("hidden_size")


FAMILIES = {
    "mllama_text_model": Family(
        bias="none", layers=_layer, extra=_more_rows, pattern=lambda config, n: [FULL] * n
    ),
}
