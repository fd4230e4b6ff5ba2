"""Mixers with a fixed state: their weights, and what one layer keeps for a sequence.

State sizes are those of transformers 5.24, which keeps recurrent values as float32 (MiniMax's in
the model's type) and the last ``kernel`` inputs of each convolution channel in the model's type;
other engines keep one tap fewer, or another type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from configurator.core.errors import UsageError
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import State

__all__ = [
    "delta_attention",
    "gated_delta_net",
    "lightning",
    "mamba1",
    "mamba2",
    "rg_lru",
    "short_convolution",
]

# Names of Mamba's sizes: as Bamba, Granite and Falcon-H1 write them; others below.
_BAMBA = {
    "heads": "mamba_n_heads", "head_dim": "mamba_d_head", "groups": "mamba_n_groups",
    "state": "mamba_d_state", "kernel": "mamba_d_conv", "expand": "mamba_expand",
    "conv_bias": "mamba_conv_bias", "bias": "mamba_proj_bias", "inner": "mamba_d_ssm",
}  # fmt: skip


def mamba2(
    config: Config,
    names: Mapping[str, str] = _BAMBA,
    *,
    out_bias: bool | None = None,
    norm: bool = True,
) -> State:
    """Mamba-2 (Dao and Gu 2024): ``d*(2i + 2gn + h)`` in, ``i*d`` out, a convolution between.

    ``i`` is the inner width, ``g`` groups, ``n`` state size, ``h`` heads.
    """
    d, key = config.count("hidden_size"), dict(_BAMBA) | dict(names)
    heads = config.count(key["heads"])
    width = config.find(key["head_dim"])
    inner = config.maybe(key["inner"])
    if inner is None and width is not None and isinstance(width.value, int) and key["expand"] == "":
        inner = heads * config.count(key["head_dim"])
    if inner is None:
        inner = int(config.real(key["expand"], 2.0) * d)
    if inner % heads:
        raise UsageError(
            f"{config.named(key['heads'])} {heads} does not divide the mixer's inner width {inner}"
        )
    groups, state = config.count(key["groups"], 1), config.count(key["state"])
    kernel = config.count(key["kernel"], 4)
    channels = inner + 2 * groups * state
    project = inner + channels + heads
    bias = config.flag(key["bias"])
    params = (
        d * project + project * bias
        + channels * kernel + channels * config.flag(key["conv_bias"], True)
        + 3 * heads + inner * norm
        + inner * d + d * (bias if out_bias is None else out_bias)
    )  # fmt: skip
    return State(kind="mamba2", params=params, values=inner * state, channels=channels, taps=kernel)


def mamba1(config: Config, *, heads: int = 1, norms: bool = False) -> State:
    """Mamba (Gu and Dao 2023); Jamba adds norms on its step, input and output vectors."""
    d = config.count("hidden_size")
    plain = config.find("state_size") is not None
    names = (
        ("expand", "state_size", "conv_kernel", "use_conv_bias", "use_bias", "time_step_rank")
        if plain
        else ("mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_conv_bias",
              "mamba_proj_bias", "mamba_dt_rank")
    )  # fmt: skip
    expand, state_key, conv, conv_bias, bias_key, rank_key = names
    inner = int(config.real(expand, 2.0) * d)
    state, kernel = config.count(state_key, 16), config.count(conv, 4)
    found = config.find(rank_key)
    automatic = found is None or found.value == "auto"
    rank = math.ceil(d / 16) if automatic else config.count(rank_key)
    bias = config.flag(bias_key)
    params = (
        d * 2 * inner + 2 * inner * bias
        + inner * kernel + inner * config.flag(conv_bias, True)
        + inner * (rank + 2 * state) + rank * inner + inner
        + inner * state + inner
        + inner * d + d * bias
        + (rank + 2 * state if norms else 0)
    )  # fmt: skip
    if heads > 1:  # Zamba splits the step's projection among the heads
        params -= rank * inner - rank * (inner // heads) * heads
    return State(kind="mamba", params=params, values=inner * state, channels=inner, taps=kernel)


def gated_delta_net(config: Config) -> State:
    """Gated delta rule (Yang et al. 2024), as in Qwen3-Next and OLMo Hybrid."""
    d = config.count("hidden_size")
    heads_k, heads_v = config.maybe("linear_num_key_heads"), config.maybe("linear_num_value_heads")
    heads_k = heads_k or config.count("num_attention_heads")
    heads_v = heads_v or config.count("num_attention_heads")
    if heads_v % heads_k:
        raise UsageError(
            f"{config.key('linear_num_value_heads')} {heads_v} is not a multiple of "
            f"{config.key('linear_num_key_heads')} {heads_k}; every key head serves the same "
            "number of value heads"
        )
    width_k = config.maybe("linear_key_head_dim") or int(0.75 * d / heads_k)
    width_v = config.maybe("linear_value_head_dim") or 2 * width_k
    kernel = config.count("linear_conv_kernel_dim", 4)
    keys, values = heads_k * width_k, heads_v * width_v
    channels = 2 * keys + values
    params = (
        d * (channels + values + 2 * heads_v) + channels * kernel + 2 * heads_v + width_v
        + values * d
    )  # fmt: skip
    return State(
        kind="gated delta net",
        params=params,
        values=heads_v * width_k * width_v,
        channels=channels,
        taps=kernel,
    )


def delta_attention(config: Config, *, heads: int, width: int, kernel: int) -> State:
    """Kimi Delta Attention: a delta rule with a gate per channel (Kimi Linear, 2025)."""
    d, inner = config.count("hidden_size"), heads * width
    params = (
        3 * d * inner + 3 * inner * kernel
        + inner + heads + d * width + width * inner  # forget gate
        + d * heads  # step
        + d * width + width * inner + width  # output gate and norm
        + inner * d
    )  # fmt: skip
    return State(
        kind="Kimi delta attention",
        params=params,
        values=heads * width * width,
        channels=3 * inner,
        taps=kernel,
    )


def lightning(config: Config, heads: int, width: int) -> State:
    """Lightning attention of MiniMax-01: a decaying sum of key-value products, gated and normed."""
    d, inner = config.count("hidden_size"), heads * width
    params = d * 3 * inner + inner * d + d * inner + inner
    return State(
        kind="lightning attention", params=params, values=heads * width * width, value_bytes=2
    )


def rg_lru(config: Config) -> State:
    """The real-gated linear recurrence of Griffin (De et al. 2024), as in RecurrentGemma."""
    d, heads = config.count("hidden_size"), config.count("num_attention_heads")
    width, kernel = config.maybe("lru_width") or d, config.count("conv1d_width", 4)
    if width % heads:
        raise UsageError(
            f"{config.key('num_attention_heads')} {heads} does not divide the recurrence's width "
            f"{width}"
        )
    block = width // heads
    gates = 2 * (heads * block * block + width)
    params = 2 * (d * width + width) + width * d + d + width * kernel + width + width + gates
    return State(kind="RG-LRU", params=params, values=width, channels=width, taps=kernel - 1)


def short_convolution(config: Config) -> State:
    """A gated convolution over the last few tokens (LFM2)."""
    d, kernel = config.count("hidden_size"), config.count("conv_L_cache", 3)
    bias = config.flag("conv_bias")
    params = d * kernel + 3 * d * d + d * d + (d + 3 * d + d) * bias
    return State(kind="short convolution", params=params, channels=d, taps=kernel)
