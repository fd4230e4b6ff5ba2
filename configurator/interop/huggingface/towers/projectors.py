"""More composite files by their outer type: Cohere, LFM2, Idefics 2, Fuyu, LLaVA's relatives."""

from __future__ import annotations

from collections.abc import Callable

from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.defaults import class_defaults
from configurator.interop.huggingface.towers import Tower
from configurator.interop.huggingface.towers.blocks import clip, width_of
from configurator.interop.huggingface.towers.composites import (
    feature_layers,
    one_tower,
    two_linear_layers,
)

__all__ = ["OUTER"]


def _cohere(top: Config, text: Config, tower: Config) -> int:
    """Pixels gathered, a gated feed-forward: the first matrix gives both halves."""
    merged = width_of(tower) * top.count("downsample_factor", 2) ** 2
    width, out = top.count("alignment_intermediate_size", 36864), text.count("hidden_size")
    return merged * width + width + width // 2 * out + out


def _aya(top: Config, text: Config, tower: Config) -> int:
    """The same with a norm before it; as wide as the text model where the file does not say."""
    merged = width_of(tower) * top.count("downsample_factor", 2) ** 2
    out = text.count("hidden_size")
    width = top.count("alignment_intermediate_size", out)
    return 2 * merged + merged * width + width + width // 2 * out + out


def _lfm2(top: Config, text: Config, tower: Config) -> int:
    merged = width_of(tower) * top.count("downsample_factor", 2) ** 2
    width, out = top.count("projector_hidden_size", 2560), text.count("hidden_size")
    norm = 2 * merged * top.flag("projector_use_layernorm", True)
    return norm + merged * width + width * out + (width + out) * top.flag("projector_bias", True)


def _vipllava(top: Config, text: Config, tower: Config) -> int:
    """Five layers of the tower side by side unless the file lists others, and a norm."""
    layers = feature_layers(top, 5)
    d, out = width_of(tower) * layers, text.count("hidden_size")
    return 2 * d + d * out + out * out + 2 * out


def _gemma3(top: Config, text: Config, tower: Config) -> int:
    d = width_of(tower)
    return d * text.count("hidden_size") + d


def _idefics2(top: Config, text: Config, tower: Config) -> int:
    """A gated projection, then a resampler of few latents with grouped attention."""
    d, out, wide = width_of(tower), text.count("hidden_size"), text.count("intermediate_size")
    total = 2 * d * wide + wide * out
    found = top.section("perceiver_config")
    inner = found or Config(values={}, path=top.path, notes=top.notes)
    heads, width = inner.count("resampler_n_heads", 16), inner.count("resampler_head_dim", 96)
    kv = inner.count("num_key_value_heads", 4)
    attention = 2 * out * heads * width + 2 * out * kv * width
    layer = 3 * out + attention + 3 * 4 * out * out
    depth, latents = inner.count("resampler_depth", 3), inner.count("resampler_n_latents", 64)
    return total + latents * out + depth * layer + out


def _fuyu(top: Config, text: Config) -> tuple[Tower, ...]:
    """No tower: patches go through one matrix into the text model."""
    patch, out = top.count("patch_size", 30), text.count("hidden_size")
    return (Tower(kind="vision", params=top.count("num_channels", 3) * patch**2 * out + out),)


def _video_llava(top: Config, text: Config) -> tuple[Tower, ...]:
    """Two CLIP towers of one configuration, for images and for films, and one projector."""
    inner = top.section("vision_config", "clip_vision_model")
    if inner is None:
        return (Tower(kind="vision", note="vision_config is missing, so no vision tower"),)
    inner.defaults = class_defaults("clip_vision_model")
    heads = inner.maybe("num_attention_heads") or 0
    params = 2 * clip(inner) + two_linear_layers(top, text, inner)
    return (Tower(kind="vision", heads=heads, params=params),)


_BY_TYPE: dict[str, Callable[[Config, Config, Config], int]] = {
    "aya_vision": _aya,
    "cohere2_vision": _cohere,
    "idefics2": _idefics2,
    "lfm2_vl": _lfm2,
    "shieldgemma2": _gemma3,
    "vipllava": _vipllava,
}
OUTER = {
    "fuyu": _fuyu,
    "video_llava": _video_llava,
    **{outer: one_tower(outer, "vision_config", add) for outer, add in _BY_TYPE.items()},
}
