"""One layer's feed-forward from its keys: dense or a mixture, and which layers are which."""

from __future__ import annotations

from configurator.core.errors import UsageError
from configurator.core.layers import FeedForward
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Mixture, resolve

__all__ = ["dense", "feed_forward_of", "is_sparse", "mixture_of"]

_DENSE, _SPARSE = ("dense", "mlp"), ("sparse", "moe", "hash_moe")


def feed_forward_of(config: Config, family: Family, layer: int) -> FeedForward | None:
    """Layer ``layer``'s feed-forward, by the family's builder or by the usual keys."""
    if family.feed_forward is not None:
        return family.feed_forward(config, family, layer)
    mixture = family.mixture
    if mixture is not None and is_sparse(config, mixture, layer):
        return mixture_of(config, mixture, layer)
    return dense(config, family, layer)


def dense(
    config: Config, family: Family, layer: int, width: int | None = None
) -> FeedForward | None:
    """A dense feed-forward; four times the model's width where the file and class are silent.

    ``None`` where the family is not known either, or where the file says null to a class that
    wants a number: its width is then unknown.
    """
    d_model = config.count("hidden_size")
    key = family.mixture.dense_width if family.mixture else "intermediate_size"
    d_ff = width or config.entry(key, layer)
    if d_ff is None and (not family.known or config.overrides_default(key)):
        config.notes.unknown.append(config.named(key))
        return None
    if d_ff is None:
        d_ff = 4 * d_model
    return FeedForward(
        d_model=d_model,
        d_ff=d_ff,
        gated=bool(resolve(family.gated, config)),
        bias=bool(resolve(family.mlp_bias, config)),
    )


def is_sparse(config: Config, mixture: Mixture, layer: int) -> bool:
    """Whether layer ``layer`` is a mixture: by list, by the family's rule, or by the usual keys."""
    experts = config.entry("num_experts", layer, least=0)
    if experts is None or (experts == 0 and mixture.dense_at_zero):
        return False
    kinds = config.words("mlp_layer_types")
    if kinds is not None:
        config.one_a_layer("mlp_layer_types", len(kinds), layer)
        if kinds[layer] not in (*_DENSE, *_SPARSE):
            raise UsageError(f"{config.key('mlp_layer_types')}[{layer}] must be dense or sparse")
        return kinds[layer] in _SPARSE
    if mixture.sparse is not None:
        return mixture.sparse(config, layer)
    if layer in (config.wholes("mlp_only_layers") or ()):
        return False
    if layer < (
        config.maybe("first_k_dense_replace", least=0)
        or mixture.first_dense * (not config.has("first_k_dense_replace"))
    ):
        return False
    frequency = config.find("moe_layer_freq")
    if frequency is not None and isinstance(frequency.value, list):
        listed = config.wholes("moe_layer_freq") or []
        config.one_a_layer("moe_layer_freq", len(listed), layer)
        return bool(listed[layer])
    step = config.maybe("decoder_sparse_step")
    if step is not None:
        return (layer + 1) % step == 0
    every = config.maybe("moe_layer_freq")
    return every is None or layer % every == 0


def experts_of(config: Config, layer: int) -> int:
    """Routed experts of a layer; 0 where none are stated."""
    return config.entry("num_experts", layer, least=0) or 0


def mixture_of(config: Config, mixture: Mixture, layer: int) -> FeedForward:
    """A mixture of experts: routed and shared ones, the router, and the gate where there is one."""
    d_model, experts = config.count("hidden_size"), experts_of(config, layer)
    width = config.entry(mixture.width, layer) or config.entry("intermediate_size", layer)
    if width is None:
        raise UsageError(
            f"{config.key('num_experts')} is {experts} but {config.named(mixture.width)} is "
            f"missing; state it"
        )
    visited = config.entry("num_experts_per_tok", layer) if experts else 0
    if visited is None:
        config.notes.active_unknown.append(config.named("num_experts_per_tok"))
        visited = experts
    if visited > experts:
        raise UsageError(
            f"{config.key('num_experts_per_tok')} {visited} is more than "
            f"{config.key('num_experts')} {experts}; a token visits some of the experts"
        )
    shared = _shared_width(config, mixture, layer, width)
    router = d_model * experts + experts * mixture.router_bias
    other = d_model * mixture.shared_gate + experts * mixture.correction_bias
    if mixture.shared_bias is not None and shared and mixture.shared_bias(config):
        other += (2 if mixture.gated else 1) * shared + d_model
    router = mixture.router(config) if mixture.router else router
    other += mixture.other(config) if mixture.other else 0
    if not experts:  # what is left is the shared expert
        config.notes.warn(
            f"{config.key('num_experts')} is 0: {config.model_type} still builds these layers as "
            f"mixtures, with the router and the shared expert alone"
        )
        return FeedForward(
            d_model=d_model, d_ff=shared, gated=mixture.gated, other_params=router + other
        )
    return FeedForward(
        d_model=d_model,
        d_ff=width,
        gated=mixture.gated,
        bias=mixture.bias,
        n_experts=experts,
        experts_per_token=visited,
        shared_d_ff=shared,
        router_params=router,
        other_params=other,
    )


def _shared_width(config: Config, mixture: Mixture, layer: int, width: int) -> int:
    if mixture.shared == "one":
        return width
    sized = mixture.shared == "stated" and config.has("shared_expert_intermediate_size")
    if sized or mixture.shared == "size":
        return config.maybe("shared_expert_intermediate_size", least=0) or 0
    if mixture.shared == "none":
        return 0
    return (config.entry("n_shared_experts", layer, least=0) or 0) * width
