"""Mamba layers, alone or with attention among or beside them: Jamba, Bamba, Nemotron-H, Zamba."""

from __future__ import annotations

from configurator.core.errors import UsageError, show
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.assemble import norm_size, plain_layer, state_layer
from configurator.interop.huggingface.attention import check_heads, grouped
from configurator.interop.huggingface.config import MAX_LAYERS, Config
from configurator.interop.huggingface.family import Family, Layer, Mixture, State
from configurator.interop.huggingface.feed_forward import dense, mixture_of
from configurator.interop.huggingface.recurrent import mamba1, mamba2
from configurator.interop.huggingface.rules import at_offset, flagged
from configurator.interop.huggingface.scopes import FULL, HYBRID, LINEAR, kinds_of

__all__ = ["FAMILIES"]

_NEMOTRON = {
    "heads": "mamba_num_heads", "head_dim": "mamba_head_dim", "groups": "n_groups",
    "state": "ssm_state_size", "kernel": "conv_kernel", "expand": "", "conv_bias": "use_conv_bias",
    "bias": "use_bias", "inner": "",
}  # fmt: skip
_MAMBA2 = {
    "heads": "num_heads", "head_dim": "head_dim", "groups": "n_groups", "state": "state_size",
    "kernel": "conv_kernel", "expand": "expand", "conv_bias": "use_conv_bias",
    "bias": "use_bias", "inner": "",
}  # fmt: skip
_ZAMBA2 = {
    "heads": "n_mamba_heads", "head_dim": "mamba_headdim", "groups": "mamba_ngroups",
    "bias": "add_bias_linear", "conv_bias": "", "inner": "",
}  # fmt: skip


def _bamba(config: Config, i: int) -> State:
    return mamba2(config)


def _bamba_pattern(config: Config, n: int) -> list[str]:
    full = config.indices("attn_layer_indices", n) or ()
    return [FULL if i in full else LINEAR for i in range(n)]


def _jamba(config: Config, i: int) -> State:
    return mamba1(config, norms=True)


def _jamba_pattern(config: Config, n: int) -> list[str]:
    attends = at_offset(config, 8, 4)
    return [FULL if attends(i) else LINEAR for i in range(n)]


def _jamba_sparse(config: Config, i: int) -> bool:
    period = config.count("expert_layer_period", 2)
    return i % period == config.count("expert_layer_offset", 1, least=0)


def _jamba_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    if _jamba_sparse(config, i) and config.count("num_experts", 16, least=0) > 1:
        return mixture_of(config, Mixture(width="intermediate_size"), i)
    return dense(config, family, i)


def _granite_hybrid(config: Config, family: Family, i: int) -> FeedForward | None:
    """A shared feed-forward in every layer, and experts beside it where there are any."""
    shared = config.count("shared_intermediate_size", 1024)
    if not config.maybe("num_experts", least=0):
        return dense(config, family, i, shared)
    return mixture_of(config, Mixture(width="intermediate_size", shared="size"), i)


def _granite_pattern(config: Config, n: int) -> list[str]:
    return [LINEAR] * n


# ---- Falcon-H1: attention and Mamba-2 side by side in every layer


def _falcon_h1(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    (layer,) = plain_layer(config, family, i, FULL)
    state = mamba2(
        config,
        out_bias=config.flag("projectors_bias"),
        norm=config.flag("mamba_rms_norm"),
    )
    return [layer, state_layer(state, None, 0, beside=True)]


# ---- Nemotron-H: one mixer a block; attention, Mamba-2, feed-forward and experts alternate


def _nemotron_pattern(config: Config, n: int) -> list[str]:
    text = config.text("hybrid_override_pattern")
    letters = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe"}
    for letter in text:
        if letter not in letters:
            raise UsageError(
                f"{config.named('hybrid_override_pattern')} holds {show(letter)}; it knows M "
                f"(Mamba), * (attention), - (feed-forward) and E (experts)"
            )
    return [letters[letter] for letter in text]


def _nemotron_layers(config: Config) -> int:
    for name in ("layer_types", "hybrid_override_pattern"):
        found = config.find(name)
        if found is not None and isinstance(found.value, list | str) and found.value:
            if config.has("num_hidden_layers"):
                config.one_a_layer(found.key, len(found.value), 0)
            return len(found.value)
    raise UsageError(
        f"{config.named('hybrid_override_pattern')} is missing; a Nemotron-H file lists its blocks"
    )


def _nemotron_block(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    norms = norm_size(config, "rms")
    if kind == LINEAR:
        # The class reads the projection's bias from use_bias, whatever mamba_proj_bias says.
        return [state_layer(mamba2(config, _NEMOTRON), None, norms)]
    if kind == FULL:
        attention = grouped(config, family, i)
        return [Layer(attention=attention, scope=Scope("full"), norm_params=norms)]
    if kind == "mlp":
        return [Layer(feed_forward=dense(config, family, i), norm_params=norms, label=kind)]
    return [Layer(feed_forward=_nemotron_experts(config, i), norm_params=norms, label=kind)]


def _nemotron_experts(config: Config, i: int) -> FeedForward:
    """Plain experts, in a narrower space where ``moe_latent_size`` says so, and a shared one."""
    d, latent = config.count("hidden_size"), config.maybe("moe_latent_size")
    bias = config.flag("mlp_bias")
    shared = config.count("shared_expert_intermediate_size", least=0)
    beside = 2 * d * shared + (shared + d) * bias
    if latent:
        beside += 2 * d * latent + (latent + d) * bias
    plain = mixture_of(config, Mixture(gated=False), i)
    return FeedForward(
        d_model=latent or d,
        d_ff=plain.d_ff,
        gated=False,
        n_experts=plain.n_experts,
        experts_per_token=plain.experts_per_token,
        router_params=d * plain.n_experts,
        other_params=beside,
    )


# ---- Zamba: one or two attention blocks whose weights every use shares; each use has its cache


def _zamba_attention(config: Config) -> GroupedQuery:
    """It reads the hidden state beside the embedding and writes the model's width."""
    d, heads = config.count("hidden_size"), config.count("num_attention_heads")
    kv = config.maybe("num_key_value_heads") or heads
    check_heads(config, heads, kv)
    both = _zamba_width(config)
    width = config.maybe("attention_head_dim") or both // heads
    return GroupedQuery(
        d_model=both, n_heads=heads, n_kv_heads=kv, d_head=width,
        other_params=-heads * width * (both - d),
    )  # fmt: skip


def _zamba_width(config: Config) -> int:
    """Twice the model's width; a key states it too, and must agree."""
    both = 2 * config.count("hidden_size")
    stated = config.maybe("attention_hidden_size")
    if stated not in (None, both):
        raise UsageError(
            f"{config.named('attention_hidden_size')} is {stated}; attention reads the hidden "
            f"state beside the embedding, so it must be twice hidden_size, {both}"
        )
    return both


def _zamba_block(config: Config, use: int, blocks: int) -> Layer:
    """One use of a shared block; untied, the class gives each use weights of its own."""
    d = config.count("hidden_size")
    width = config.maybe("intermediate_size") or 4 * d
    own = use < blocks or not config.flag("tie_word_embeddings", True)
    return Layer(
        attention=_zamba_attention(config),
        scope=Scope("full"),
        feed_forward=FeedForward(d_model=d, d_ff=width, bias=config.flag("add_bias_linear")),
        norm_params=3 * d,
        weights=own,
        label="shared block" if own else "shared block, used again",
    )


def _zamba_kinds(config: Config, family: Family) -> list[str]:
    n = config.count("num_hidden_layers")
    return kinds_of(config, family, n)


def _zamba_pattern(config: Config, n: int) -> list[str]:
    attends = at_offset(config, 6, 4)
    head = [LINEAR, LINEAR, HYBRID][:n]
    return head + [HYBRID if attends(i) else LINEAR for i in range(n - len(head))]


def _zamba(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    d = config.count("hidden_size")
    state = mamba1(config, heads=config.count("n_mamba_heads", 2))
    if kind != HYBRID:
        return [state_layer(state, None, d)]
    use = _zamba_kinds(config, family)[:i].count(HYBRID)
    return [_zamba_block(config, use, 1), state_layer(state, None, d, d * d, beside=True)]


def _zamba2_pattern(config: Config, n: int) -> list[str]:
    kinds = [LINEAR] + ([LINEAR] * 5 + [HYBRID]) * 7 + [LINEAR] * 4 + [HYBRID] + [LINEAR] * 3
    kinds += [HYBRID] + [LINEAR] * 2
    return kinds[:n] if len(kinds) >= n else kinds + [LINEAR] * (n - len(kinds))


def _zamba2(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    d = config.count("hidden_size")
    state = mamba2(config, _ZAMBA2)
    if kind != HYBRID:
        return [state_layer(state, None, d)]
    use = _zamba_kinds(config, family)[:i].count(HYBRID)
    width, rank = config.maybe("intermediate_size") or 4 * d, config.count("adapter_rank", 128)
    adapters = rank * (d + 2 * width)
    if config.flag("use_shared_attention_adapter"):
        adapters += 3 * 2 * rank * 2 * d
    blocks = config.count("num_mem_blocks", 1)
    block = _zamba_block(config, use, blocks)
    adapters *= block.weights * len(range(use % blocks, _zamba2_uses(config), blocks))
    return [block, state_layer(state, None, d, d * d + adapters, beside=True)]


def _zamba2_uses(config: Config) -> int:
    """Uses that a block has adapters for: as listed; the class does not count ``layer_types``."""
    listed = config.values.get("hybrid_layer_ids")
    if isinstance(listed, list):
        return len(config.wholes("hybrid_layer_ids") or ())
    kinds = config.values.get("layers_block_type")
    if isinstance(kinds, list):
        return kinds.count(HYBRID)
    return _zamba2_pattern(config, MAX_LAYERS).count(HYBRID)


def _plain_mamba1(config: Config, i: int) -> State:
    return mamba1(config)


def _plain_mamba2(config: Config, i: int) -> State:
    return mamba2(config, _MAMBA2)


def _no_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    return None


FAMILIES = {
    "bamba": Family(mixers={LINEAR: _bamba}, pattern=_bamba_pattern, mlp_bias=flagged("mlp_bias")),
    "jamba": Family(bias="none", mixers={LINEAR: _jamba}, pattern=_jamba_pattern,
                    feed_forward=_jamba_feed_forward, missing_null="warn"),
    "granitemoehybrid": Family(
        mixers={LINEAR: _bamba}, pattern=_granite_pattern, feed_forward=_granite_hybrid
    ),
    "falcon_h1": Family(layers=_falcon_h1, mlp_bias=flagged("mlp_bias"),
                        pattern=lambda config, n: [HYBRID] * n),
    "nemotron_h": Family(
        layers=_nemotron_block, pattern=_nemotron_pattern, n_layers=_nemotron_layers, gated=False,
        bias="none", mlp_bias=flagged("mlp_bias"), tied=None,
    ),
    "zamba": Family(layers=_zamba, pattern=_zamba_pattern, tied=True),
    "zamba2": Family(layers=_zamba2, pattern=_zamba2_pattern, tied=True),
    "mamba": Family(norms=1, mixers={LINEAR: _plain_mamba1}, tied=True,
                    pattern=_granite_pattern, feed_forward=_no_feed_forward),
    "falcon_mamba": Family(norms=1, mixers={LINEAR: _plain_mamba1}, tied=True,
                           pattern=_granite_pattern, feed_forward=_no_feed_forward),
    "mamba2": Family(norms=1, mixers={LINEAR: _plain_mamba2}, pattern=_granite_pattern,
                     feed_forward=_no_feed_forward),
}  # fmt: skip
