"""The coefficients of the latency model: what each means, its prior and how sure that is.

These are the neutral priors that the fit starts from (general knowledge, before any timed row);
fitted values are data and come with the catalog's devices in ``Device.coefficients``. A key may
be followed by a kernel family and by ``fp8``: those are factors on it, 1 where absent.
"""

from __future__ import annotations

from collections.abc import Mapping

from configurator.core.case import Device

__all__ = ["PRIORS", "Coefficients"]

PRIORS: dict[str, float] = {
    # decode: times in us, divided by the clock in GHz where the name ends in _ghz
    "decode.share": 0.91,
    "decode.floor_us": 3.3,
    "decode.floor_us_ghz": 10.0,
    "decode.floor": 1.0,
    "decode.floor.fa2": 0.51,
    "decode.floor.fa3_sglang": 0.9,
    "decode.floor.trtllm": 0.79,
    "decode.floor.intel": 8.0,
    "decode.floor.fp8": 1.14,
    "decode.floor.trtllm.fp8": 0.88,
    "decode.share.fa2": 0.9,
    "decode.item_us_ghz": 5.5,
    "decode.item_us_ghz.fa2": 1.67,
    "decode.item_us_ghz.trtllm": 1.2,
    "decode.rate_bytes": 34.0,
    "decode.rate_bytes.fa2": 0.73,
    "decode.rate_bytes.fa3": 1.3,
    "decode.split_us_ghz": 4.9,
    "decode.merge_us_ghz": 0.105,
    "decode.merge_us_ghz.fa2": 4.0,
    "decode.copy_us_ghz": 10.5,
    "decode.cache_bytes_per_clock": 17.0,
    "decode.overlap": 0.72,
    # prefill
    "prefill.compute": 0.65,
    "prefill.compute.fa3": 1.28,
    "prefill.compute.fp8": 0.82,
    "prefill.compute.fa4": 0.8,
    "prefill.exp": 0.5,
    "prefill.item_us_ghz": 2.3,
    "prefill.item_us_ghz.fa3": 1.5,
    "prefill.item_us_ghz.fa2": 0.7,
    "prefill.floor_us": 2.3,
    "prefill.floor_us_ghz": 10.5,
    "prefill.floor": 1.0,
    "prefill.floor.fa3": 1.34,
    "prefill.floor.fa2": 0.79,
    "prefill.floor.fp8": 1.15,
    "prefill.share": 1.36,
    "prefill.kv_passes": 3.75,
    # MLA
    "mla.share": 1.0,
    "mla.compute": 1.05,
    "mla.compute.fp8": 1.11,
    "mla.item_us_ghz": 17.0,
    "mla.floor_us": 3.5,
    "mla.floor_us_ghz": 0.6,
    "mla.split_us_ghz": 6.6,
    "mla.token_clocks": 170.0,
    "mla.convert_us_ghz": 9.0,
    "mla.convert_share": 0.10,
    "mla.overlap": 0.72,
    "mla_prefill.floor_us": 18.0,
    "mla_prefill.compute": 0.65,
    "mla_prefill.item_us": 0.5,
    "mla_prefill.fp8": 0.87,
}


class Coefficients:
    """Reads a coefficient for a kernel family and a cache type: the base times its factors."""

    __slots__ = ("_family", "_fp8", "_values")

    def __init__(self, device: Device, family: str, narrow: bool) -> None:
        self._values: Mapping[str, float] = {**PRIORS, **device.coefficients}
        self._family = family
        self._fp8 = narrow

    def __call__(self, key: str) -> float:
        """``key`` x ``key.family`` x (``key.family.fp8``, else ``key.fp8``) for a narrow cache."""
        values = self._values
        found = values[key] * values.get(f"{key}.{self._family}", 1.0)
        if self._fp8:
            general = values.get(f"{key}.fp8", 1.0)
            found *= values.get(f"{key}.{self._family}.fp8", general)
        return found

    def get(self, key: str, default: float) -> float:
        """A coefficient that may be absent."""
        return self._values.get(key, default)
