"""Models that bring their own code: read by their files' keys, checked against published sizes."""

from __future__ import annotations

from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.assemble import plain_layer
from configurator.interop.huggingface.attention import grouped
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.families.hybrids import FAMILIES as HYBRIDS
from configurator.interop.huggingface.family import Family, Layer, Mixture
from configurator.interop.huggingface.feed_forward import dense, experts_of, mixture_of
from configurator.interop.huggingface.rules import bias_if, flagged, picks
from configurator.interop.huggingface.scopes import FULL

__all__ = ["FAMILIES"]


def _full(config: Config, n: int) -> list[str]:
    return [FULL] * n


# ---- ChatGLM 1 (it alone states inner_hidden_size), 2 and 3, GLM-4 in its first form


def _is_first(config: Config) -> bool:
    return config.has("inner_hidden_size")


def _chatglm_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    """``multi_query_attention`` only says that the group number applies."""
    heads = config.count("num_attention_heads")
    kv = config.count("multi_query_group_num", 1) if config.flag("multi_query_attention") else heads
    qkv, everything = config.flag("add_qkv_bias"), _chatglm_biased(config)
    bias = "all" if everything else "qkv" if qkv else "none"
    return grouped(config, family, i, heads=heads, kv_heads=kv, bias=bias)


def _chatglm_biased(config: Config) -> bool:
    return _is_first(config) or config.flag("add_bias_linear")


def _chatglm_shifts(config: Config) -> int:
    """The first ChatGLM's norms have shifts beside their scales."""
    return config.count("hidden_size") * _is_first(config)


# ---- doubled widths: Qwen (1), Molmo and OLMo's first files state both halves of a gated matrix


def _half(config: Config, family: Family, i: int) -> FeedForward | None:
    return dense(config, family, i, config.count("intermediate_size", least=2) // 2)


def _olmo_first(config: Config, family: Family, i: int) -> FeedForward | None:
    d = config.count("hidden_size")
    both = config.maybe("mlp_hidden_size") or int(config.real("mlp_ratio", 4.0) * d)
    return dense(config, family, i, max(1, both // 2))


# ---- Hunyuan: every second layer reads the cache of the one before (cross-layer attention)


def _reads_earlier(config: Config, i: int) -> bool:
    return config.flag("use_cla") and i % config.count("cla_share_factor", 1) != 0


def _hunyuan_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    return grouped(
        config, family, i, own_kv=not _reads_earlier(config, i),
        d_head=config.maybe("head_dim"),
    )  # fmt: skip


def _hunyuan(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    (layer,) = plain_layer(config, family, i, kind)
    if not _reads_earlier(config, i):
        return [layer]
    return [
        Layer(
            attention=layer.attention,
            scope=Scope("shared"),
            feed_forward=layer.feed_forward,
            norm_params=layer.norm_params,
            label="reads the cache of the layer before",
        )
    ]


def _hunyuan_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    if experts_of(config, i) <= 1:
        return dense(config, family, i)
    return mixture_of(config, Mixture(shared="count"), i)


def _minicpm_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    if experts_of(config, i):
        return mixture_of(config, Mixture(width="intermediate_size"), i)
    return dense(config, family, i)


# ---- Falcon's first files: the type says which decoder it is


def _refined_web(config: Config, family: Family, i: int, kind: str) -> Attention:
    """The older decoder has one KV head or as many as queries, whatever is stated; see Falcon."""
    heads = config.count("num_attention_heads")
    kv = config.maybe("num_key_value_heads")
    if kv is None or config.model_type == "RefinedWebModel":
        kv = 1 if config.flag("multi_query", True) else heads
    return grouped(config, family, i, heads=heads, kv_heads=kv)


def _arctic(config: Config, family: Family, i: int) -> FeedForward | None:
    """Experts, and in the same layer a dense feed-forward as wide as the model."""
    d = config.count("hidden_size")
    beside = 3 * d * d if config.flag("use_residual", True) else 0
    return mixture_of(config, Mixture(width="intermediate_size", other=lambda c: beside), i)


FAMILIES = {
    "chatglm": Family(
        attention=_chatglm_attention, pattern=_full, bare=False, mlp_bias=_chatglm_biased,
        gated=lambda config: not _is_first(config), tied=_is_first, extra=_chatglm_shifts,
        layer_extra=lambda config, i, kind: 2 * _chatglm_shifts(config),
    ),
    "qwen": Family(bias="qkv", feed_forward=_half, pattern=_full),
    "molmo": Family(bias=bias_if("qkv_bias", "qkv", True), feed_forward=_half, pattern=_full),
    "hf_olmo": Family(
        norm="none", bias="none", feed_forward=_olmo_first, pattern=_full,
        vocab_size=lambda c: c.maybe("embedding_size") or c.count("vocab_size"),
    ),
    "mimo": Family(bias=bias_if("attention_bias", "qkv", True), pattern=_full),
    "baichuan": Family(bias="none", pattern=_full),
    "internlm": Family(bias=bias_if("bias", "all", True), pattern=_full),
    "internlm2": Family(bias=bias_if("bias", "all"), pattern=_full),
    "xverse": Family(bias="none", pattern=_full),
    "orion": Family(norm="layer", pattern=_full),
    "yi": Family(bias="none", pattern=_full),
    "aquila": Family(bias="none", pattern=_full),
    "stablelm_epoch": Family(norm="layer", bias=bias_if("use_qkv_bias", "qkv"), pattern=_full),
    "minicpm": Family(feed_forward=_minicpm_feed_forward, tied=True, pattern=_full),
    "deepseek": Family(mixture=Mixture(shared="count", first_dense=1), pattern=_full),
    "bailing_moe": Family(
        bias=bias_if("use_qkv_bias", "qkv"), pattern=_full,
        qk_norm=picks("use_qk_norm", "head", "none"),
        mixture=Mixture(shared="count"), mlp_bias=flagged("use_bias"),
    ),
    "hunyuan": Family(
        qk_norm=picks("use_qk_norm", "head", "none"), attention=_hunyuan_attention,
        layers=_hunyuan, feed_forward=_hunyuan_feed_forward, tied=True, pattern=_full,
    ),
    "phi3small": Family(
        norm="layer", bias="all", mlp_bias=True, tied=True, pattern=_full,
        notes=("block-sparse layers read fewer keys but keep them all: the cache is full",),
    ),
    "grok-1": Family(norms=4, bias="none", mixture=Mixture(width="intermediate_size"),
                     tied=True, pattern=_full),
    "arctic": Family(norms=3, bias="none", feed_forward=_arctic, pattern=_full),
    "RefinedWebModel": Family(
        norm="layer", norms=1, bias=bias_if("bias", "all"), gated=False, mlp_bias=flagged("bias"),
        attention=_refined_web, tied=True, pattern=_full,
    ),
    "RefinedWeb": Family(
        norm="layer", norms=2, bias=bias_if("bias", "all"), gated=False, mlp_bias=flagged("bias"),
        attention=_refined_web, tied=True, pattern=_full,
    ),
    "minimax_text_01": HYBRIDS["minimax"],
    "minimax_m1": HYBRIDS["minimax"],
}  # fmt: skip
FAMILIES["hunyuan_moe"] = FAMILIES["hunyuan"]
FAMILIES["bailing_moe_v2"] = FAMILIES["bailing_moe"]
FAMILIES["Yi"] = FAMILIES["yi"]
FAMILIES["MiniMaxText01"] = FAMILIES["MiniMaxM1"] = FAMILIES["minimax_text_01"]
