"""Decoders whose windowed and full layers differ in heads: MiMo-V2, Step-3.7, and Step-3's MFA."""

from __future__ import annotations

from configurator.core.errors import UsageError, show
from configurator.core.kinds import Attention
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.rules import bias_if, only_listed
from configurator.interop.huggingface.scopes import FULL, WINDOW

__all__ = ["FAMILIES"]


# ---- MiMo-V2: twice the KV heads and a sink per head in windowed layers, values narrower than keys


def _mimo_pattern(config: Config, n: int) -> list[str]:
    listed = config.wholes("hybrid_layer_pattern")
    if listed is None:
        return [FULL if i == 0 or (i + 1) % 6 == 0 else WINDOW for i in range(n)]
    if len(listed) != n:
        raise UsageError(
            f"{config.named('hybrid_layer_pattern')} lists {len(listed)} layers but "
            f"{config.key('num_hidden_layers')} is {n}; they must agree"
        )
    return [WINDOW if local else FULL for local in listed]


def _mimo_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    local = kind == WINDOW
    heads = config.count("num_attention_heads")
    kv = config.count("num_key_value_heads")
    width, value = config.count("head_dim"), config.count("v_head_dim")
    if local:
        heads = config.count("swa_num_attention_heads", heads)
        kv = config.count("swa_num_key_value_heads", 2 * kv)
        width = config.count("swa_head_dim", width)
        value = config.count("swa_v_head_dim", value)
    name = "add_swa_attention_sink_bias" if local else "add_full_attention_sink_bias"
    sinks = heads if config.flag(name, local) else 0
    return grouped(
        config, family, i, heads=heads, kv_heads=kv, d_head=width, v_head_dim=value,
        other_params=sinks,
    )  # fmt: skip


# ---- Step-3.7: a gate per head, and more query heads in windowed layers


def _step_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    heads = config.count("num_attention_heads")
    kv = config.count("num_key_value_heads", heads)
    width = config.maybe("head_dim")
    other = config.section("attention_other_setting")
    if kind == WINDOW:
        heads = config.count("num_sliding_attention_heads", heads)
        if other is not None:
            heads = other.count("num_attention_heads", heads)
            kv = other.count("num_key_value_heads", kv)
            width = other.maybe("head_dim") or width
    return grouped(config, family, i, heads=heads, kv_heads=kv, d_head=width)


def _step_sparse(config: Config, i: int) -> bool:
    """``moe_layers_enum`` lists the mixtures, as numbers or as a string of them."""
    listed = config.find("moe_layers_enum")
    if listed is None:
        return i >= 3
    items = listed.value.split(",") if isinstance(listed.value, str) else listed.value
    if not isinstance(items, list):
        raise UsageError(f"{config.named('moe_layers_enum')} is {show(items)}; it must be a list")
    found = set()
    for item in items:
        text = str(item).strip()
        if text and not (text.isascii() and text.isdigit() and len(text) <= 6):
            raise UsageError(
                f"{config.named('moe_layers_enum')} holds {show(item)}; it must list layers"
            )
        if text:
            found.add(int(text))
    return i in found


# ---- Step-3: one KV head, and a query of low rank for all heads (multi-matrix factorization)


def _mfa(config: Config, family: Family, i: int, kind: str) -> Attention:
    d, heads = config.count("hidden_size"), config.count("num_attention_heads")
    width = config.count("head_dim", 256)
    kv = config.count("num_key_value_heads", 1)
    rank = config.maybe("share_q_dim")
    other = 0 if rank is None else rank * (d + heads * width) + rank - d * heads * width
    return grouped(config, family, i, heads=heads, kv_heads=kv, d_head=width, other_params=other)


_STEP_EXPERTS = Mixture(shared="size", sparse=_step_sparse)

FAMILIES = {
    "mimo_v2_flash": Family(
        bias=bias_if("attention_bias", "qkv"), attention=_mimo_attention, pattern=_mimo_pattern,
        mixture=Mixture(shared="count", first_dense=1),
    ),
    "step3p7_text": Family(
        bias="none", qk_norm="head", gate="head", attention=_step_attention,
        mixture=_STEP_EXPERTS, pattern=only_listed,
    ),
    "step3_text": Family(
        bias="none", attention=_mfa, mixture=_STEP_EXPERTS, pattern=lambda config, n: [FULL] * n
    ),
}  # fmt: skip
FAMILIES["step3p5"] = FAMILIES["step3p7_text"]
FAMILIES["mimo_v2"] = FAMILIES["mimo_v2_flash"]
