"""Multi-head latent attention: DeepSeek V2 to V3.2 and the families that took it over."""

from __future__ import annotations

from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.assemble import norm_size
from configurator.interop.huggingface.attention import latent
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer, Mixture
from configurator.interop.huggingface.feed_forward import mixture_of
from configurator.interop.huggingface.rules import flagged
from configurator.interop.huggingface.scopes import INDEXED

__all__ = ["FAMILIES"]


def _indexed(config: Config, n: int) -> list[str]:
    return [INDEXED] * n


def _index_shares(config: Config) -> list[bool]:
    """Which layers have an indexer of their own; the others reuse an earlier layer's choice."""
    n = config.count("num_hidden_layers")
    listed = config.words("indexer_types")
    if listed is not None:
        return [name == "full" for name in listed]
    pattern = config.values.get("index_topk_pattern")
    if isinstance(pattern, str):
        return [letter == "F" for letter in pattern]
    frequency = max(config.maybe("index_topk_freq", least=0) or 1, 1)
    offset = config.maybe("index_skip_topk_offset", least=0)
    offset = 2 if offset is None else offset
    return [max(i - offset + 1, 0) % frequency == 0 for i in range(n)]


def _dsa_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    own = _index_shares(config)
    return latent(config, family, i, indexed=i >= len(own) or own[i])


def _v32_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    return latent(config, family, i, indexed=True)


# ---- LongCat: two attention blocks and two dense feed-forwards a layer, experts across both


def _longcat(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    norms = 2 * norm_size(config, family.norm)
    attention = latent(config, family, i)
    d = config.count("hidden_size")
    width = config.count("intermediate_size")
    experts = config.count("num_experts", least=0)
    idle = config.maybe("zero_expert_num", least=0) or 0
    router = d * (experts + idle) + (experts + idle) * config.flag("router_bias")
    mixture = mixture_of(config, Mixture(router=lambda c: router), i)
    dense_width = FeedForward(d_model=d, d_ff=width)
    first = Layer(
        attention=attention, scope=Scope("full"), norm_params=norms,
        feed_forward=FeedForward(
            d_model=d, d_ff=mixture.d_ff, n_experts=mixture.n_experts,
            experts_per_token=mixture.experts_per_token, router_params=router,
            other_params=dense_width.params() + mixture.other_params,
        ),
    )  # fmt: skip
    second = Layer(
        attention=attention, scope=Scope("full"), norm_params=norms, feed_forward=dense_width
    )
    if idle:
        config.notes.warn(
            f"{idle} of {experts + idle} experts do nothing: a token that is sent to them goes "
            f"through fewer weights than params_active_per_token says; transformers 5.24 builds "
            f"input matrices for them too, which released weights lack and this count leaves out"
        )
    return [first, second]


_V3 = Mixture(shared="count")

FAMILIES = {
    "deepseek_v2": Family(
        mlp_bias=flagged("mlp_bias"),
        mixture=Mixture(shared="count", shared_bias=flagged("mlp_bias")),
    ),
    "deepseek_v3": Family(mixture=_V3),
    "kimi_k2": Family(mixture=_V3),
    "sarvam_mla": Family(mixture=_V3),
    "deepseek_v32": Family(mixture=_V3, pattern=_indexed, attention=_v32_attention),
    "glm_moe_dsa": Family(mixture=_V3, pattern=_indexed, attention=_dsa_attention),
    "glm4_moe_lite": Family(mixture=Mixture(shared="count", first_dense=1)),
    "minicpm3": Family(mlp_bias=flagged("mlp_bias"), tied=True),
    "youtu": Family(mlp_bias=flagged("mlp_bias"), tied=True),
    "longcat_flash": Family(layers=_longcat),
    "axk1": Family(
        mixture=Mixture(
            shared="count", first_dense=1, other=lambda c: c.count("hidden_size"),
        ),
    ),
}  # fmt: skip
