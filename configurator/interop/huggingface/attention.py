"""One layer's attention from its keys: head counts and widths checked, biases and norms counted."""

from __future__ import annotations

from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, resolve

__all__ = ["check_heads", "grouped", "head_width", "heads_of", "is_latent", "kv_heads_of", "latent"]


def heads_of(config: Config, layer: int) -> int:
    """Query heads of a layer: one number, or the layer's entry in a list."""
    return config.entry("num_attention_heads", layer) or config.count("num_attention_heads")


def kv_heads_of(config: Config, family: Family, layer: int, heads: int) -> int:
    """KV heads of a layer; null and a missing key mean what the family's class makes of them."""
    name = "num_key_value_heads"
    stated = config.entry(name, layer)
    if stated is not None:
        return stated
    if config.is_null(name):
        if family.missing_null == "refuse":
            raise UsageError(
                f"{config.key(name)} is null, which {config.model_type} does not allow; state "
                f"the number of KV heads"
            )
        if family.missing_null == "warn":
            config.notes.warn(
                f"{config.key(name)} is null: read as {heads}, one for each query head, as older "
                f"releases of transformers did; 5.24 refuses null for {config.model_type}"
            )
        return heads
    if family.kv_default is not None:
        return family.kv_default(config)
    return heads


def head_width(config: Config, family: Family, heads: int) -> int:
    """Width of one head: stated, or by the family's rule, or ``hidden_size / heads`` if whole."""
    stated = config.maybe("head_dim")
    if stated is not None:
        return stated
    if family.head_width is not None:
        return family.head_width(config)
    width = config.count("hidden_size")
    if width % heads:
        raise UsageError(
            f"{config.key('hidden_size')} {width} is not a multiple of "
            f"{config.key('num_attention_heads')} {heads}, and there is no head_dim; state head_dim"
        )
    usual = config.defaults.get("head_dim")
    if config.is_null("head_dim") and usual and usual != width // heads:
        config.notes.warn(
            f"{config.key('head_dim')} is null: read as {width // heads}, hidden_size / heads; "
            f"where the key is absent {config.model_type} means {usual}"
        )
    return width // heads


def check_heads(config: Config, heads: int, kv_heads: int, kv_key: str = "") -> None:
    """Refuse KV heads that do not divide the query heads, naming both and the counts that do.

    ``kv_key`` names the key that holds the KV heads where it is not one of the usual ones.
    """
    q, kv = config.key("num_attention_heads"), kv_key or config.key("num_key_value_heads")
    if kv_heads <= heads and heads % kv_heads == 0:
        return
    divisors = [n for n in range(1, heads + 1) if heads % n == 0]
    listed = ", ".join(map(str, divisors[:24]))
    if not kv_key and not config.has("num_key_value_heads") and config.model_type:
        kv = f"{kv} (not in the file; the default of {config.model_type} is)"
    if kv_heads > heads:
        raise UsageError(
            f"{kv} {kv_heads} is more than {q} {heads}; use a divisor of {heads}: {listed}"
        )
    near = [max(n for n in divisors if n < kv_heads), min(n for n in divisors if n > kv_heads)]
    raise UsageError(
        f"{q} {heads} is not a multiple of {kv} {kv_heads}; use {near[0]} or {near[1]} "
        f"(the divisors of {heads} are {listed})"
    )


def grouped(
    config: Config,
    family: Family,
    layer: int,
    *,
    heads: int | None = None,
    kv_heads: int | None = None,
    kv_key: str = "",
    d_head: int | None = None,
    v_head_dim: int = 0,
    d_source: int = 0,
    d_model: int = 0,
    own_kv: bool = True,
    value_is_key: bool = False,
    qk_norm: str | None = None,
    bias: str | None = None,
    other_params: int = 0,
) -> GroupedQuery:
    """Grouped-query attention of one layer by the usual keys, with what the caller knows better."""
    width = d_model or config.count("hidden_size")
    heads = heads or heads_of(config, layer)
    kv_heads = kv_heads or kv_heads_of(config, family, layer, heads)
    check_heads(config, heads, kv_heads, kv_key)
    d_head = d_head or head_width(config, family, heads)
    norm = resolve(family.qk_norm, config) if qk_norm is None else qk_norm
    gate = resolve(family.gate, config)
    biased = bias_of(config, family) if bias is None else bias
    whole = width * heads * d_head
    gate_params = {"none": 0, "width": whole, "fused": whole, "head": width * heads}[gate]
    kv_norms = kv_heads if own_kv else 0
    other = {
        "none": 0,
        "head": 0,
        "layer": 4 * d_head,
        "heads": (heads + kv_norms) * d_head,
        "width": (heads + kv_norms) * d_head,
        "width+": 2 * (heads + kv_norms) * d_head,
    }[norm]
    if gate == "fused" and biased in ("qkv", "all"):  # the gate is a second half of the query
        other += heads * d_head
    if resolve(family.sinks, config, layer):
        other += heads
    return GroupedQuery(
        d_model=width,
        n_heads=heads,
        n_kv_heads=kv_heads,
        d_head=d_head,
        v_head_dim=0 if v_head_dim == d_head else v_head_dim,
        d_source=d_source,
        bias=biased,
        qk_norm=norm == "head",
        value_is_key=value_is_key,
        own_kv=own_kv,
        gate_params=gate_params,
        other_params=other + other_params,
    )


def is_latent(config: Config) -> bool:
    """Whether the file asks for a latent: by its rank, unless ``use_mla`` switches it off."""
    if not config.flag("use_mla", True):
        return False
    rank, width = config.maybe("kv_lora_rank"), config.maybe("qk_nope_head_dim", least=0)
    if rank is None and width and config.is_null("kv_lora_rank"):
        raise UsageError(
            f"{config.named('kv_lora_rank')} is null but qk_nope_head_dim is {width}; state the "
            f"latent's rank, or use_mla false for attention without one"
        )
    return rank is not None


def bias_of(config: Config, family: Family) -> str:
    """Which projections have biases: a fixed kind, or all of them by ``attention_bias``."""
    if family.bias == "attention_bias":
        return "all" if config.flag("attention_bias") else "none"
    return str(resolve(family.bias, config))


def latent(
    config: Config,
    family: Family,
    layer: int,
    *,
    indexed: bool = False,
    gate_params: int = 0,
    other_params: int = 0,
    heads: int | None = None,
) -> Latent:
    """Latent attention by DeepSeek's keys; ``head_dim`` means the rotary part there: not read.

    KV heads play no part, but a count that cannot be is refused.
    """
    heads = heads or heads_of(config, layer)
    config.entry("num_key_value_heads", layer)
    index_dim = config.count("index_head_dim", 128) if indexed else 0
    return Latent(
        d_model=config.count("hidden_size"),
        n_heads=heads,
        kv_lora_rank=config.count("kv_lora_rank"),
        q_lora_rank=config.maybe("q_lora_rank", least=0) or 0,
        qk_nope_head_dim=config.count("qk_nope_head_dim", least=0),
        qk_rope_head_dim=config.count("qk_rope_head_dim", least=0),
        v_head_dim=config.maybe("v_head_dim") or _v_width(config, heads),
        index_head_dim=index_dim,
        index_n_heads=config.count("index_n_heads", 64) if indexed else 0,
        bias=bias_of(config, family),
        gate_params=gate_params,
        other_params=other_params,
    )


def _v_width(config: Config, heads: int) -> int:
    width = config.count("hidden_size")
    if width % heads:
        raise UsageError(
            f"{config.named('v_head_dim')} is missing and {config.key('hidden_size')} {width} is "
            f"not a multiple of {config.key('num_attention_heads')} {heads}; state v_head_dim"
        )
    return width // heads
