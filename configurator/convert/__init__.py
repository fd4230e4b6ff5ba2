"""Advice on converting a model that exists to fewer KV heads or to a latent, or not to.

Every possible conversion is priced on the model itself: cache, what then fits, decode time. What
it costs in quality is what was published for conversions, by the catalog's ids; nothing is
interpolated between models.
"""

from __future__ import annotations

from configurator.convert.advice import Conversion, convert, convert_case
from configurator.convert.change import Change

__all__ = ["Change", "Conversion", "convert", "convert_case"]
