"""Attention layers among linear ones: Qwen3-Next, Kimi Linear, MiniMax-01, LFM2, RecurrentGemma."""

from __future__ import annotations

from dataclasses import replace

from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward
from configurator.interop.huggingface.attention import grouped, head_width
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture, State
from configurator.interop.huggingface.feed_forward import dense
from configurator.interop.huggingface.recurrent import (
    delta_attention,
    gated_delta_net,
    lightning,
    rg_lru,
    short_convolution,
)
from configurator.interop.huggingface.rules import linear_every
from configurator.interop.huggingface.scopes import CONV, FULL, LINEAR, WINDOW

__all__ = ["FAMILIES"]


def _delta_net(config: Config, i: int) -> State:
    return gated_delta_net(config)


def _convolution(config: Config, i: int) -> State:
    return short_convolution(config)


# ---- Kimi Linear: three layers of delta attention to one of latent attention without positions


def _kimi(config: Config, i: int) -> State:
    inner = config.section("linear_attn_config")
    width = (inner.maybe("head_dim") if inner else None) or config.count("linear_head_dim", 128)
    heads = (inner.maybe("num_heads") if inner else None) or config.count("linear_num_heads", 32)
    kernel = inner.maybe("short_conv_kernel_size") if inner else None
    return delta_attention(
        config, heads=heads, width=width, kernel=kernel or config.count("linear_conv_kernel_dim", 4)
    )


def _kimi_pattern(config: Config, n: int) -> list[str]:
    inner = config.section("linear_attn_config")
    full = inner.indices("full_attn_layers", n, 1) if inner is not None else None
    if full is None:
        return [FULL if i and i % 4 == 0 else LINEAR for i in range(n)]
    return [FULL if i in full else LINEAR for i in range(n)]


# ---- MiniMax-01: lightning attention, every 8th layer softmax


def _lightning(config: Config, i: int) -> State:
    heads = config.count("num_attention_heads")
    return lightning(config, heads, head_width(config, FAMILIES["minimax"], heads))


def _minimax_pattern(config: Config, n: int) -> list[str]:
    listed = config.wholes("attn_type_list")
    if listed is not None:
        if len(listed) != n:
            raise UsageError(
                f"{config.named('attn_type_list')} lists {len(listed)} layers but "
                f"{config.key('num_hidden_layers')} is {n}; they must agree"
            )
        return [FULL if kind == 1 else LINEAR for kind in listed]
    return [FULL if (i + 1) % 2 else LINEAR for i in range(n)]


# ---- LFM2


def _lfm_pattern(config: Config, n: int) -> list[str]:
    full = config.indices("full_attn_idxs", n)
    return [FULL if full is None or i in full else CONV for i in range(n)]


def _lfm_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    """Two thirds of the stated width, rounded up to a multiple, unless the file says otherwise."""
    width = config.maybe("block_ff_dim") or config.count("intermediate_size")
    if config.flag("block_auto_adjust_ff_dim", True):
        width = 2 * width // 3
        factor = config.real("block_ffn_dim_multiplier", 1.0)
        step = config.count("block_multiple_of", 256)
        width = step * -(-int(factor * width) // step)
    return dense(config, family, i, width)


# ---- RecurrentGemma: two recurrent layers to one of local attention


def _griffin(config: Config, i: int) -> State:
    return rg_lru(config)


def _griffin_pattern(config: Config, n: int) -> list[str]:
    block = config.words("block_types") or ["recurrent", "recurrent", "attention"]
    return [WINDOW if block[i % len(block)] == "attention" else LINEAR for i in range(n)]


def _griffin_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    bias = "all" if config.flag("attention_bias") else "o"
    return grouped(config, family, i, bias=bias)


def _griffin_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    return dense(config, family, i, config.count("intermediate_size", least=2) // 2)


_NEXT = Mixture(shared="size", shared_gate=True)
_NEXT_OR_DENSE = replace(_NEXT, dense_at_zero=True)

FAMILIES = {
    "qwen3_next": Family(
        qk_norm="head", gate="fused", mixture=_NEXT_OR_DENSE, mixers={LINEAR: _delta_net},
        pattern=linear_every("full_attention_interval", 4),
    ),
    "qwen3_5_text": Family(
        qk_norm="head", gate="fused", mixers={LINEAR: _delta_net},
        pattern=linear_every("full_attention_interval", 4),
    ),
    "qwen3_5_moe_text": Family(
        qk_norm="head", gate="fused", mixture=_NEXT, mixers={LINEAR: _delta_net},
        pattern=linear_every("full_attention_interval", 4),
    ),
    "kimi_linear": Family(
        mixture=Mixture(shared="count", first_dense=1), mixers={LINEAR: _kimi},
        pattern=_kimi_pattern, tied=None,
    ),
    "minimax": Family(
        bias="none", mixture=Mixture(width="intermediate_size"), mixers={LINEAR: _lightning},
        pattern=_minimax_pattern,
    ),
    "lfm2": Family(
        bias="none", qk_norm="head", tied=True, mixers={CONV: _convolution},
        pattern=_lfm_pattern, feed_forward=_lfm_feed_forward,
    ),
    "lfm2_moe": Family(
        bias="none", qk_norm="head", tied=True, mixers={CONV: _convolution},
        pattern=_lfm_pattern, mixture=Mixture(),
    ),
    "recurrent_gemma": Family(
        tied=True, mixers={LINEAR: _griffin}, pattern=_griffin_pattern, mlp_bias=True,
        attention=_griffin_attention, feed_forward=_griffin_feed_forward,
    ),
    "olmo_hybrid": Family(
        qk_norm="width", mixers={LINEAR: _delta_net}, pattern=linear_every("full_every", 4),
    ),
}  # fmt: skip
