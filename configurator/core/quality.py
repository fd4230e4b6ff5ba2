"""Expected loss penalty of an attention geometry against MHA at equal parameters.

The curve was fitted to 21 published comparisons of GQA and MQA with MHA, parameters held equal
(the freed ones given to the feed-forward): Zadouri et al. 2025, Shazeer 2019, Brandon et al.
2024, Su 2025 and the MLRA paper. ``benchmarks/fit_quality.py`` refits it from the catalog's own
evidence. Leaving one study out gives an error of 0.0165 nats, so differences below 0.016 nats
are ties, and nothing here is more precise than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from configurator.core.columns import as_float, is_column, maximum, where
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.units import Real, Truth

__all__ = ["CURVE", "ERROR_NATS", "MLA_ERROR_NATS", "Penalty", "cached_width", "penalty"]


@dataclass(frozen=True, slots=True)
class Curve:
    """``net(x) = scale * (x^exponent - x_mha^exponent) + offset``, never below zero."""

    scale: float = 0.0018
    exponent: float = -1.07
    offset: float = -0.0078


CURVE = Curve()
ERROR_NATS = 0.016
MLA_ERROR_NATS = 0.02
# Below this cached width everything rests on one study whose head width fell with the cache.
_EXTRAPOLATED_BELOW = 0.1
# Heads of 32 cost 0.03 to 0.04 nats against 64 in one study and nothing in another; heads of 16
# cost 0.018 to 0.048 (Vaswani et al. 2017 table 3, Shazeer 2019, Brandon et al. 2024). Queries cut
# to an eighth of the width together with keys and values cost 0.033 to 0.043 (Shazeer 2019).
_NARROW_HEAD, _NARROWEST_HEAD = 64, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """Nats a token against MHA at equal parameters: value, half-width, and where it is a guess.

    ``expected`` is the curve's own value, below zero where sharing came out slightly ahead (the
    freed parameters go to the feed-forward); ``nats`` is what is shown, never below zero.
    """

    nats: Real
    expected: Real
    error: Real
    extrapolated: Truth
    cached_width: Real


def cached_width(attention: Attention) -> Real:
    """``x``: cached key and value elements per token and layer over ``d_model``; MHA has 2."""
    return as_float(attention.cache_elements()) / attention.d_model


def penalty(attention: Attention) -> Penalty:
    """The penalty in nats, numbers or columns. Differences inside ``error`` count as ties.

    MLA at rank ``4 * qk_nope_head_dim`` equals MHA within 0.02 nats in six studies; a smaller
    rank is charged the GQA curve at its own cached width and marked as extrapolated. Ignores
    size, data and training length, for which no published comparison is large enough.
    """
    x = cached_width(attention)
    if isinstance(attention, Latent):
        enough = attention.kv_lora_rank >= 4 * attention.qk_nope_head_dim
        curve = maximum(_curve(x, 2.0), 0.0)
        nats = where(enough, 0.0 * x, curve)
        return Penalty(
            nats=nats,
            expected=nats,
            error=MLA_ERROR_NATS + 0.0 * x,
            extrapolated=~enough if is_column(enough) else not enough,
            cached_width=x,
        )
    heads = attention.n_heads
    width = attention.d_head if isinstance(attention, GroupedQuery) else attention.d_model // heads
    x_mha = 2.0 * as_float(heads * width) / attention.d_model
    # A narrow MHA (heads * d_head well under d_model) loses more than its cache says; the curve's
    # own data hold the query width near d_model, so the reference never falls below 1.
    expected = where(attention.kv_heads == heads, 0.0 * x, _curve(x, maximum(x_mha, 1.0)))
    nats = maximum(expected, 0.0)
    error: Real = ERROR_NATS + 0.0 * x
    for narrow, extra, band in (
        (width < _NARROW_HEAD, 0.015, 0.02),
        (width < _NARROWEST_HEAD, 0.033, 0.02),
        (4 * heads * width <= attention.d_model, 0.038, 0.02),
    ):
        if not np.any(narrow):
            continue
        more = where(narrow, extra, 0.0)
        nats, expected = nats + more, expected + more
        error = where(narrow, ERROR_NATS + band, error)
    return Penalty(
        nats=nats,
        expected=expected,
        error=error,
        extrapolated=x < _EXTRAPOLATED_BELOW,
        cached_width=x,
    )


def _curve(x: Real, x_mha: Real) -> Real:
    if is_column(x_mha) and x_mha.size and np.all(x_mha == x_mha.flat[0]):
        x_mha = float(x_mha.flat[0])  # as for every geometry whose heads fill the width
    fixed = CURVE.offset - CURVE.scale * x_mha**CURVE.exponent
    return CURVE.scale * x**CURVE.exponent + fixed
