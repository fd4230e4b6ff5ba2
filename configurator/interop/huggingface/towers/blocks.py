"""Weights of vision and audio encoders, by the type of their configuration.

Every function returns all weights of one encoder. ``ENCODERS`` maps a nested ``model_type`` to
its function; a nested level without a type is read as the class that its outer type names.
"""

from __future__ import annotations

from collections.abc import Callable

from configurator.core.errors import UsageError, show
from configurator.interop.huggingface.config import Config

__all__ = ["ENCODERS", "patches", "width_of"]


def _sides(config: Config, name: str, default: int) -> tuple[int, int]:
    """A size that is one number or a pair."""
    found = config.find(name)
    if found is None or not isinstance(found.value, list):
        side = config.count(name, default)
        return side, side
    values = config.wholes(name, 1) or []
    if len(values) != 2:
        raise UsageError(f"{config.named(name)} is {show(found.value)}; give one number or two")
    return values[0], values[1]


def patches(config: Config, image: int, patch: int) -> int:
    """Patches of one image."""
    (high, wide), (tall, across) = (
        _sides(config, "image_size", image),
        _sides(config, "patch_size", patch),
    )
    return (high // tall) * (wide // across)


def width_of(config: Config) -> int:
    """Width of the encoder's residual stream."""
    for name in ("hidden_size", "embed_dim", "d_model"):
        value = config.maybe(name)
        if value is not None:
            return value
    raise UsageError(f"{config.named('hidden_size')} is missing; state the tower's width")


def _block(
    d: int, ff: int, *, norm: int, qkv_bias: bool = True, o_bias: bool = True,
    ff_bias: bool = True, gated: bool = False,
) -> int:  # fmt: skip
    """Attention of full width, a feed-forward, and two norms of ``norm`` values each."""
    attention = 4 * d * d + 3 * d * qkv_bias + d * o_bias
    feed = (3 if gated else 2) * d * ff + ((2 if gated else 1) * ff + d) * ff_bias
    return attention + feed + 2 * norm


def _layers(config: Config, default: int) -> int:
    for name in ("num_hidden_layers", "depth", "encoder_layers"):
        value = config.maybe(name)
        if value is not None:
            return value
    return default


def _patch(config: Config, d: int, patch: int, frames: int = 1) -> int:
    channels = config.maybe("num_channels") or config.count("in_channels", 3)
    tall, across = _sides(config, "patch_size", patch)
    return channels * frames * tall * across * d


def siglip(config: Config) -> int:
    """SigLIP: biases everywhere, learned positions, and a pooling head unless switched off."""
    d, ff = config.count("hidden_size", 768), config.count("intermediate_size", 3072)
    layers = _layers(config, 12) * _block(d, ff, norm=2 * d)
    total = _patch(config, d, 16) + d + patches(config, 224, 16) * d + layers + 2 * d
    if config.flag("vision_use_head", True):
        total += d + 4 * d * d + 4 * d + 2 * d + 2 * d * ff + ff + d
    return total


def siglip2(config: Config) -> int:
    """SigLIP 2 with free image sizes: patches arrive flat, positions are a stated number."""
    d, ff = config.count("hidden_size", 768), config.count("intermediate_size", 3072)
    rows = config.count("num_patches", 256)
    layers = _layers(config, 12) * _block(d, ff, norm=2 * d)
    total = _patch(config, d, 16) + d + rows * d + layers + 2 * d
    if config.flag("vision_use_head", True):
        total += d + 4 * d * d + 4 * d + 2 * d + 2 * d * ff + ff + d
    return total


def clip(config: Config) -> int:
    """CLIP: a class token, patches without bias, norms before and after the layers."""
    d, ff = config.count("hidden_size", 768), config.count("intermediate_size", 3072)
    rows = patches(config, 224, 32) + 1
    return (
        d
        + _patch(config, d, 32)
        + rows * d
        + _layers(config, 12) * _block(d, ff, norm=2 * d)
        + 2 * 2 * d
    )


def llama4(config: Config) -> int:
    """Llama 4's tower: CLIP's, and an adapter over patches put side by side."""
    side, out = config.count("intermediate_size", 5632), config.count("projector_output_dim", 4096)
    return clip(config) + side * config.count("projector_input_dim", 4096) + out * out


def idefics(config: Config) -> int:
    """Idefics 2 and 3, SmolVLM: SigLIP without a pooling head."""
    d, ff = config.count("hidden_size", 1152), config.count("intermediate_size", 3072)
    rows = (config.count("image_size", 224) // config.count("patch_size", 32)) ** 2
    return (
        _patch(config, d, 32) + d + rows * d + _layers(config, 12) * _block(d, ff, norm=2 * d)
        + 2 * d
    )  # fmt: skip


def pixtral(config: Config) -> int:
    """Pixtral: RMS norms, gated feed-forward, rotary positions, no biases."""
    d, ff = config.count("hidden_size", 1024), config.count("intermediate_size", 4096)
    block = _block(d, ff, norm=d, qkv_bias=False, o_bias=False, ff_bias=False, gated=True)
    return _patch(config, d, 16) + d + _layers(config, 24) * block


def internvl(config: Config) -> int:
    """InternViT: a class token, layer scales, query, key and value biases if asked."""
    d, ff = config.count("hidden_size", 1024), config.count("intermediate_size", 4096)
    norm = d if config.text("norm_type", "layer_norm") == "rms_norm" else 2 * d
    block = _block(d, ff, norm=norm, qkv_bias=config.flag("attention_bias")) + 2 * d
    if config.flag("use_qk_norm"):
        block += 2 * d
    rows = patches(config, 448, 14) + 1
    positions = rows * d if config.flag("use_absolute_position_embeddings", True) else 0
    mask = d if config.flag("use_mask_token") else 0
    last = 0 if config.flag("use_mean_pooling", True) else 2 * d
    layers = _layers(config, 24) * block
    return d + mask + positions + _patch(config, d, 14) + d + layers + last


def qwen2_vl(config: Config) -> int:
    """Qwen2-VL: two frames a patch, layer norms, and a merger of four patches."""
    d, ratio = config.count("embed_dim", 1280), config.count("mlp_ratio", 4)
    out = config.count("hidden_size", 3584)
    merged = d * config.count("spatial_merge_size", 2) ** 2
    merger = 2 * d + merged * merged + merged + merged * out + out
    frames = config.count("temporal_patch_size", 2)
    return (
        _patch(config, d, 14, frames)
        + _layers(config, 32) * _block(d, ratio * d, norm=2 * d)
        + merger
    )


def qwen2_5_vl(config: Config) -> int:
    """Qwen2.5-VL: RMS norms and a gated feed-forward with biases."""
    d, ff = config.count("hidden_size", 3584), config.count("intermediate_size", 3420)
    out = config.count("out_hidden_size", 3584)
    merged = d * config.count("spatial_merge_size", 2) ** 2
    merger = d + merged * merged + merged + merged * out + out
    frames = config.count("temporal_patch_size", 2)
    return (
        _patch(config, d, 14, frames)
        + _layers(config, 32) * _block(d, ff, norm=d, gated=True)
        + merger
    )


def qwen3_vl(config: Config) -> int:
    """Qwen3-VL: learned positions, and mergers that feed early layers too (deepstack)."""
    d, ff = config.count("hidden_size", 1152), config.count("intermediate_size", 4304)
    out = config.count("out_hidden_size", 3584)
    merged = d * config.count("spatial_merge_size", 2) ** 2
    merger = merged * merged + merged + merged * out + out
    deep = config.wholes("deepstack_visual_indexes")
    early = len([8, 16, 24] if deep is None else deep)
    frames = config.count("temporal_patch_size", 2)
    rows = config.count("num_position_embeddings", 2304)
    return (
        _patch(config, d, 16, frames) + d + rows * d
        + _layers(config, 27) * _block(d, ff, norm=2 * d)
        + merger + 2 * d + early * (merger + 2 * merged)
    )  # fmt: skip


def qwen3_5(config: Config) -> int:
    """Qwen3.5: Qwen3-VL's tower with one merger."""
    d = config.count("hidden_size", 1152)
    merged = d * config.count("spatial_merge_size", 2) ** 2
    out = config.count("out_hidden_size", 3584)
    deep = config.wholes("deepstack_visual_indexes")
    early = len([8, 16, 24] if deep is None else deep)
    merger = merged * merged + merged + merged * out + out
    return qwen3_vl(config) - early * (merger + 2 * merged)


def glm4v(config: Config) -> int:
    """GLM-4V: RMS norms, gated feed-forward without biases, a convolution that halves the grid."""
    d, ff = config.count("hidden_size", 1536), config.count("out_hidden_size", 4096)
    out, wide = config.count("out_hidden_size", 4096), config.count("intermediate_size", 13696)
    bias = config.flag("attention_bias")
    block = _block(d, ff, norm=d, qkv_bias=bias, o_bias=bias, ff_bias=False, gated=True)
    merge = config.count("spatial_merge_size", 2)
    merger = out * out + 2 * out + 3 * out * wide
    frames = config.count("temporal_patch_size", 2)
    return (
        patches(config, 336, 14) * d + _patch(config, d, 14, frames) + d
        + _layers(config, 24) * block + d + d * out * merge * merge + out + d + merger
    )  # fmt: skip


def whisper_encoder(config: Config) -> int:
    """Whisper's encoder: two convolutions, fixed positions, keys without biases."""
    d = width_of(config)
    ff, mels = config.maybe("encoder_ffn_dim"), config.count("num_mel_bins", 128)
    ff = ff or config.count("intermediate_size", 5120)
    block = _block(d, ff, norm=2 * d) - d
    rows = config.count("max_source_positions", 1500)
    return 3 * mels * d + d + 3 * d * d + d + rows * d + _layers(config, 32) * block + 2 * d


def kimi(config: Config) -> int:
    """Kimi K2.5's tower: biases everywhere, a grid of positions, one norm at the end."""
    d, ff = config.count("hidden_size", 1152), config.count("intermediate_size", 4304)
    tall, wide = (config.count(f"pos_emb_{side}", 64) for side in ("height", "width"))
    return (
        _patch(config, d, 14) + d + tall * wide * d + _layers(config, 27) * _block(
            d, ff, norm=2 * d
        ) + 2 * d
    )  # fmt: skip


def mllama(config: Config) -> int:
    """Llama 3.2's tower: layers, gated layers after them, and tables for tiles and their shapes."""
    d, ff = config.count("hidden_size", 1280), config.count("intermediate_size", 5120)
    shapes = config.sequence("supported_aspect_ratios")
    ratios = (8 if shapes is None else len(shapes)) + 1
    tiles = config.count("max_num_tiles", 4)
    rows = (config.count("image_size", 448) // config.count("patch_size", 14)) ** 2 + 1
    block = _block(d, ff, norm=2 * d, qkv_bias=False, o_bias=False)
    gated = config.count("num_global_layers", 8)
    tables = rows * d + 1 + ratios * tiles * rows * d + 2 * (ratios * tiles * d + 1)
    return (
        _patch(config, d, 14) + d + tables + 2 * 2 * d
        + _layers(config, 32) * block + gated * (block + 2)
    )  # fmt: skip


ENCODERS: dict[str, Callable[[Config], int]] = {
    "siglip_vision_model": siglip,
    "siglip2_vision_model": siglip2,
    "clip_vision_model": clip,
    "idefics3_vision": idefics,
    "idefics2_vision": idefics,
    "smolvlm_vision": idefics,
    "pixtral": pixtral,
    "internvl_vision": internvl,
    "qwen2_vl_vision": qwen2_vl,
    "qwen2_5_vl_vision": qwen2_5_vl,
    "qwen3_vl_vision": qwen3_vl,
    "qwen3_vl_moe_vision": qwen3_vl,
    "qwen3_5_vision": qwen3_5,
    "qwen3_5_moe_vision": qwen3_5,
    "glm4v_vision": glm4v,
    "glm4v_moe_vision": glm4v,
    "qwen2_audio_encoder": whisper_encoder,
    "voxtral_encoder": whisper_encoder,
    "kimi_k25_vision": kimi,
    "mllama_vision_model": mllama,
    "llama4_vision_model": llama4,
}
