"""Composite files by their outer type: which tower, and the projector that joins it to the text."""

from __future__ import annotations

from collections.abc import Callable

from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.defaults import class_defaults, nested_type
from configurator.interop.huggingface.towers import Tower
from configurator.interop.huggingface.towers.blocks import ENCODERS, width_of

__all__ = ["OUTER", "feature_layers", "one_tower", "two_linear_layers"]

Projector = Callable[[Config, Config, Config], int]


def _nothing(top: Config, text: Config, tower: Config) -> int:
    return 0


def _gemma3(top: Config, text: Config, tower: Config) -> int:
    d = width_of(tower)
    return d * text.count("hidden_size") + d


def _linear(top: Config, text: Config, tower: Config) -> int:
    out = text.count("hidden_size")
    return width_of(tower) * out + out


def _paligemma(top: Config, text: Config, tower: Config) -> int:
    out = top.count("projection_dim", text.count("hidden_size"))
    return width_of(tower) * out + out


def _mllama(top: Config, text: Config, tower: Config) -> int:
    """Also how many image positions the cross-attention layers keep: every tile of one image."""
    tiles, patch = tower.count("max_num_tiles", 4), tower.count("patch_size", 14)
    text.notes.source_default = tiles * ((tower.count("image_size", 448) // patch) ** 2 + 1)
    out = text.count("hidden_size")
    return tower.count("vision_output_dim", 7680) * out + out


def feature_layers(top: Config, default: int = 1) -> int:
    """Layers of the tower whose outputs are put side by side, by number or by list."""
    plural = top.find("vision_feature_layers")
    found = plural if plural is not None and plural.stated else top.find("vision_feature_layer")
    if found is None:
        return default
    return len(found.value) if isinstance(found.value, list) else 1


def two_linear_layers(top: Config, text: Config, tower: Config) -> int:
    """LLaVA's projector."""
    d, out = width_of(tower) * feature_layers(top), text.count("hidden_size")
    bias = 2 * out * top.flag("multimodal_projector_bias", True)
    return d * out + out * out + bias


def _two_layers_and_newline(top: Config, text: Config, tower: Config) -> int:
    return two_linear_layers(top, text, tower) + text.count("hidden_size")


def _mistral3(top: Config, text: Config, tower: Config) -> int:
    d, out = width_of(tower), text.count("hidden_size")
    merge = top.count("spatial_merge_size", 2) ** 2
    bias = 2 * out * top.flag("multimodal_projector_bias")
    return d + merge * d * d + d * out + out * out + bias


def _internvl(top: Config, text: Config, tower: Config) -> int:
    ratio = top.real("downsample_ratio", 0.5)
    d = width_of(tower) * int(1 / max(ratio, 1e-3)) ** 2
    out = text.count("hidden_size")
    return 2 * d + d * out + out + out * out + out


def _llama4(top: Config, text: Config, tower: Config) -> int:
    return tower.count("vision_output_dim", 7680) * text.count("hidden_size")


def _idefics3(top: Config, text: Config, tower: Config) -> int:
    return width_of(tower) * top.count("scale_factor", 2) ** 2 * text.count("hidden_size")


def _voxtral(top: Config, text: Config, tower: Config) -> int:
    out = text.count("hidden_size")
    return tower.count("intermediate_size", 5120) * out + out * out


def _kimi(top: Config, text: Config, tower: Config) -> int:
    d = top.count("projection_hidden_size", 1152)
    merged, out = width_of(tower) * 4, text.count("hidden_size")
    return 2 * d + merged * merged + merged + merged * out + out


_BY_TYPE: dict[str, tuple[str, Projector]] = {
    "gemma3": ("vision_config", _gemma3),
    "paligemma": ("vision_config", _paligemma),
    "mllama": ("vision_config", _mllama),
    "llama4": ("vision_config", _llama4),
    "llava": ("vision_config", two_linear_layers),
    "llava_next": ("vision_config", _two_layers_and_newline),
    "llava_next_video": ("vision_config", _two_layers_and_newline),
    "llava_onevision": ("vision_config", _two_layers_and_newline),
    "mistral3": ("vision_config", _mistral3),
    "internvl": ("vision_config", _internvl),
    "idefics3": ("vision_config", _idefics3),
    "smolvlm": ("vision_config", _idefics3),
    "qwen2_vl": ("vision_config", _nothing),
    "qwen2_5_vl": ("vision_config", _nothing),
    "qwen3_vl": ("vision_config", _nothing),
    "qwen3_vl_moe": ("vision_config", _nothing),
    "qwen3_5": ("vision_config", _nothing),
    "qwen3_5_moe": ("vision_config", _nothing),
    "glm4v": ("vision_config", _nothing),
    "glm4v_moe": ("vision_config", _nothing),
    "kimi_k25": ("vision_config", _kimi),
    "qwen2_audio": ("audio_config", _linear),
    "voxtral": ("audio_config", _voxtral),
}
_HEADS = ("num_attention_heads", "encoder_attention_heads", "attention_heads")


def one_tower(
    outer: str, key: str, projector: Projector
) -> Callable[[Config, Config], tuple[Tower, ...]]:
    """A builder for files with one tower under ``key`` and a projector."""
    kind = key.removesuffix("_config")

    def build(top: Config, text: Config) -> tuple[Tower, ...]:
        inner = top.section(key, nested_type(outer, key))
        if inner is None:
            return (Tower(kind=kind, note=f"{top.named(key)} is missing, so no {kind} tower"),)
        stated = inner.text("model_type")
        if stated in ENCODERS:
            inner.model_type = stated
        inner.defaults = class_defaults(inner.model_type)
        heads = next((v for v in map(inner.maybe, _HEADS) if v), 0)
        count = ENCODERS.get(inner.model_type)
        if count is None or (stated and stated not in ENCODERS and stated != top.model_type):
            note = f"the {kind} tower of {outer} ({stated or 'unnamed'}) is not counted"
            return (Tower(kind=kind, heads=heads, note=note),)
        params = count(inner) + projector(top, text, inner)
        return (Tower(kind=kind, heads=heads, params=params),)

    return build


OUTER = {outer: one_tower(outer, key, projector) for outer, (key, projector) in _BY_TYPE.items()}
