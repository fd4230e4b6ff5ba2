"""Models whose layers differ one by one: Nemotron NAS, OpenELM, DeciLM."""

from __future__ import annotations

from configurator.core.errors import UsageError, show
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.layers import FeedForward, Scope
from configurator.interop.huggingface.attention import check_heads, grouped, head_width
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer
from configurator.interop.huggingface.scopes import FULL

__all__ = ["FAMILIES"]


# ---- Nemotron NAS: each block states its KV heads by group size, or none, and its width or none


def _blocks(config: Config, i: int) -> tuple[Config, Config]:
    listed = config.sequence("block_configs")
    n = config.count("num_hidden_layers")
    if listed is None or len(listed) != n:
        found = "missing" if listed is None else f"a list of {len(listed)}"
        raise UsageError(
            f"{config.named('block_configs')} is {found}; it must describe each of the {n} layers"
        )
    path = f"{config.path}block_configs[{i}]."
    parts = []
    for name in ("attention", "ffn"):
        value = listed[i].get(name) if isinstance(listed[i], dict) else None
        if not isinstance(value, dict):
            raise UsageError(f"{path}{name} is {show(value)}; it must be an object")
        parts.append(Config(values=value, path=f"{path}{name}.", notes=config.notes))
    return parts[0], parts[1]


def _nas_feed_forward(config: Config, block: Config) -> FeedForward | None:
    d = config.count("hidden_size")
    if block.flag("no_op"):
        return None
    if block.flag("replace_with_linear"):
        return FeedForward(d_model=d, d_ff=0, other_params=d * d)
    width = block.maybe("intermediate_size")
    if width is None:
        multiple = block.real("ffn_mult")
        if multiple <= 0:
            raise UsageError(f"{block.named('ffn_mult')} is {show(multiple)}; it must be above 0")
        width = -(-int(2 * multiple * d / 3) // 256) * 256
    return FeedForward(d_model=d, d_ff=width)


def _nas(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    d, heads = config.count("hidden_size"), config.count("num_attention_heads")
    attention, feed = _blocks(config, i)
    ff = _nas_feed_forward(config, feed)
    norms = d * (ff is not None)
    if attention.flag("no_op"):
        return [Layer(feed_forward=ff, norm_params=norms, label="no attention")]
    if attention.flag("replace_with_linear"):
        return [
            Layer(feed_forward=ff, norm_params=norms + d, other_params=d * d, label="linear map")
        ]
    group = attention.count("n_heads_in_group")
    if heads % group:
        raise UsageError(
            f"{attention.named('n_heads_in_group')} {group} does not divide "
            f"{config.key('num_attention_heads')} {heads}"
        )
    window = attention.maybe("window_length")
    return [
        Layer(
            attention=grouped(config, family, i, heads=heads, kv_heads=heads // group),
            scope=Scope("window", window) if window else Scope("full"),
            feed_forward=ff,
            norm_params=norms + d,
        )
    ]


# ---- OpenELM: query and KV heads grow with depth, as do the widths


def _openelm_attention(config: Config, family: Family, i: int, kind: str) -> Attention:
    n = config.count("num_hidden_layers")
    queries = config.per_layer("num_query_heads", n) or config.per_layer("num_attention_heads", n)
    keys = config.per_layer("num_kv_heads", n) or queries
    if queries is None or keys is None:
        raise UsageError(f"{config.named('num_query_heads')} is missing; list one entry a layer")
    check_heads(config, queries[i], keys[i])
    normed = config.flag("normalize_qk_projections", True)
    return GroupedQuery(
        d_model=config.count("hidden_size"),
        n_heads=queries[i],
        n_kv_heads=keys[i],
        d_head=head_width(config, family, queries[i]),
        qk_norm=normed,
    )


def _openelm_feed_forward(config: Config, family: Family, i: int) -> FeedForward | None:
    """The multiplier of the layer times the width, rounded to a multiple; unknown without one."""
    d, n = config.count("hidden_size"), config.count("num_hidden_layers")
    listed = config.sequence("ffn_multipliers")
    if listed is None:
        config.notes.unknown.append(config.named("ffn_multipliers"))
        return None
    if len(listed) != n:
        raise UsageError(
            f"{config.named('ffn_multipliers')} lists {len(listed)} layers but "
            f"{config.key('num_hidden_layers')} is {n}; they must agree"
        )
    factor = listed[i]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1e4:
        raise UsageError(f"{config.named('ffn_multipliers')}[{i}] is {show(factor)}; not a factor")
    step = config.count("ffn_dim_divisor", 256)
    width = max(step, int(factor * d + step / 2) // step * step)
    if width < 0.9 * factor * d:
        width += step
    return FeedForward(d_model=d, d_ff=width, gated=config.flag("ffn_with_glu", True))


# ---- DeciLM: KV heads by layer


def _deci(config: Config, family: Family, i: int, kind: str) -> Attention:
    n = config.count("num_hidden_layers")
    keys = config.per_layer("num_key_value_heads_per_layer", n)
    name = config.named(f"num_key_value_heads_per_layer[{i}]") if keys else ""
    return grouped(config, family, i, kv_heads=keys[i] if keys else None, kv_key=name)


FAMILIES = {
    "nemotron-nas": Family(
        layers=_nas, mlp_bias=False, pattern=lambda config, n: [FULL] * n,
    ),
    "openelm": Family(
        attention=_openelm_attention, feed_forward=_openelm_feed_forward, tied=True,
        pattern=lambda config, n: [FULL] * n,
    ),
    "deci": Family(attention=_deci),
}  # fmt: skip
FAMILIES["deci_lm"] = FAMILIES["deci"]
