"""The conversions that a model allows, each with what it saves and what it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from configurator.assemble import option
from configurator.convert.published import Published, published_losses
from configurator.core import cost
from configurator.core.case import Case
from configurator.core.dtypes import cache_type
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import LayerGroup
from configurator.core.quality import penalty
from configurator.core.report import Option
from configurator.core.step import decode_seconds

__all__ = ["Change", "changes_of", "smaller_cache"]

_KEPT = (8, 4, 2, 1)  # KV heads worth converting to: powers of two, which kernels and ranks want
_UPTRAINED = 0.05  # Ainslie et al. 2023: share of the original steps; 10 % adds little
_TUNED = (0.003, 0.006)  # Ji et al. 2025 (MHA2MLA): share of the pre-training tokens
_TOKENS_PER_PARAM = 20.0  # compute-optimal; deployed models saw far more


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One conversion: what it saves, what it trains, and what others lost by it.

    ``trained_share`` is the share of the original training tokens it asks for, low and high;
    ``trained_tokens`` and ``trained_flops`` are that for 20 tokens a parameter.
    ``from_scratch_nats`` is what such heads cost in models trained with them from the start: a
    floor, since no conversion does better. ``speedup`` is decode time before over after.
    """

    name: str
    option: Option
    cache_share: float
    speedup: float | None
    trained_share: tuple[float, float]
    trained_tokens: tuple[float, float]
    trained_flops: tuple[float, float]
    from_scratch_nats: float
    from_scratch_error_nats: float
    published: tuple[Published, ...]


def changes_of(case: Case, now: Option) -> list[Change]:
    """Fewer KV heads from the mildest on, then a latent at four times the head width."""
    a = case.attention
    if not isinstance(a, GroupedQuery) or a.n_kv_heads < 2 or not cost.cache_bytes(case):
        return []
    found = [
        _change(case, now, replace(a, n_kv_heads=n))
        for n in _KEPT
        if n < a.n_kv_heads and a.n_kv_heads % n == 0
    ]
    latent = Latent(
        d_model=a.d_model,
        n_heads=a.n_heads,
        kv_lora_rank=4 * a.d_head,
        qk_nope_head_dim=a.d_head,
        qk_rope_head_dim=a.d_head // 2,
        v_head_dim=a.v_width,
    )
    decodes_alone = case.shape.arch == "decoder"
    if decodes_alone and latent.cache_elements() < a.cache_elements():
        found.append(_change(case, now, latent))
    return found


def _change(case: Case, now: Option, attention: GroupedQuery | Latent) -> Change:
    converted = _converted(case, attention)
    params = float(cost.params_total(case.shape))
    latent = isinstance(attention, Latent)
    share = _TUNED if latent else (_UPTRAINED, _UPTRAINED)
    tokens = (share[0] * _TOKENS_PER_PARAM * params, share[1] * _TOKENS_PER_PARAM * params)
    active = float(cost.active_params(case.shape))
    before, after = penalty(case.attention), penalty(attention)
    left = cost.cache_bytes(converted) / cost.cache_bytes(case)
    seconds = now.latency.decode_s
    return Change(
        name="MLA" if latent else attention.projection + (
            "" if attention.kv_heads == 1 else f"-{attention.kv_heads}"
        ),
        option=option(converted),
        cache_share=left,
        speedup=seconds / float(decode_seconds(converted)) if seconds else None,
        trained_share=share,
        trained_tokens=tokens,
        trained_flops=(6.0 * active * tokens[0], 6.0 * active * tokens[1]),
        from_scratch_nats=float(after.expected) - float(before.expected),
        from_scratch_error_nats=float(after.error),
        published=published_losses(case.attention, attention, params),
    )  # fmt: skip


def _converted(case: Case, attention: GroupedQuery | Latent) -> Case:
    """The model with every layer that caches converted alike; encoders and others untouched.

    Layers of another number of KV heads keep the same share of theirs.
    """
    before = int(case.attention.kv_heads)

    def swapped(g: LayerGroup) -> LayerGroup:
        a = g.attention
        if not isinstance(a, GroupedQuery) or not g.scope.caches:
            return g
        if isinstance(attention, Latent):
            return replace(g, attention=attention)
        kept = max(1, int(a.n_kv_heads) * int(attention.n_kv_heads) // before)
        return replace(g, attention=replace(a, n_kv_heads=kept))

    groups = tuple(swapped(g) for g in case.shape.groups)
    return replace(case, shape=replace(case.shape, groups=groups))


def smaller_cache(case: Case) -> Option | None:
    """The same model with a cache of 8 bits, where it is wider now."""
    if case.workload.kv.k.bytes_per_element <= 1:
        return None
    return option(replace(case, workload=replace(case.workload, kv=cache_type("fp8"))))
