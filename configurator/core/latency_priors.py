"""The coefficients of the latency model: what each means, and what it is before any fit.

Fitted values are data and come with the catalog's devices in ``Device.coefficients``; a device
described by hand has these priors, which are general knowledge of GPUs and of the libraries.
A key may be followed by a kernel's family and by ``fp8`` (a cache below 16 bit): such a key is a
factor on the base, 1 where absent. ``_us`` is microseconds, ``_us_ghz`` microseconds times GHz:
divided by the clock, since launches and prologues run at the device's pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from configurator.core.case import Device

__all__ = ["PRIORS", "Coefficients", "Prior", "neutral"]


class Prior(NamedTuple):
    """A value before fitting, and the standard deviation of its logarithm in a fit (0: fixed)."""

    value: float
    spread: float = 0.2


_FAMILIES = ("fa2", "fa3", "flashinfer", "triton", "xqa", "xqa_hopper", "mmha")


def _factors(key: str, names: tuple[str, ...], spread: float = 0.2) -> dict[str, Prior]:
    return {f"{key}.{name}": Prior(1.0, spread) for name in names}


PRIORS: dict[str, Prior] = {
    # Decode. Share of the memory bandwidth that streaming reaches.
    "decode.share": Prior(0.88, 0.03),
    **_factors("decode.share", (*_FAMILIES, "intel"), 0.07),
    # A launch that does nothing: a constant and a part that scales with the clock.
    "decode.floor_us": Prior(3.0, 0.4),
    "decode.floor_us_ghz": Prior(8.0, 0.4),
    "decode.floor": Prior(1.0, 0.0),
    **_factors("decode.floor", (*_FAMILIES, "fa3_sglang")),
    "decode.floor.fa3": Prior(1.2),  # a second kernel prepares the schedule
    "decode.floor.trtllm_gen": Prior(0.9, 0.0),  # as TensorRT-LLM's on Hopper: never timed here
    "decode.floor.unknown": Prior(1.1, 0.0),  # the mean of what vLLM and SGLang run
    "decode.floor.intel": Prior(6.0, 1.0),
    "decode.floor.fp8": Prior(1.1),
    "decode.floor.fa3_sglang.fp8": Prior(1.0),
    # Prologue and epilogue of one work item on one unit.
    "decode.item_us_ghz": Prior(5.0, 0.4),
    **_factors("decode.item_us_ghz", _FAMILIES),
    "decode.item_us_ghz.mmha": Prior(0.5, 0.5),  # no tensor-core tiles to set up
    "decode.item_us_ghz.xqa_hopper": Prior(0.5, 0.7),  # asynchronous copies and Hopper's products
    "decode.item_us_ghz.unknown": Prior(1.2, 0.0),
    "decode.item_us_ghz.intel": Prior(1.0, 1.0),
    "decode.item_us_ghz.fp8": Prior(1.0),
    # Cache values per clock that one work item takes in, besides its tile's products.
    "decode.item_rate": Prior(20.0, 0.4),
    **_factors("decode.item_rate", _FAMILIES),
    "decode.item_rate.intel": Prior(1.0, 1.0),
    "decode.item_rate.fp8": Prior(0.8),
    "decode.item_rate.fa3.fp8": Prior(0.7),  # values are transposed inside the kernel
    "decode.item_rate.intel.fp8": Prior(1.0, 1.0),
    "decode.tile_compute": Prior(0.9, 0.07),  # share of peak of one padded tile's products
    "decode.stack": Prior(1.0, 0.4),  # cost of one more item on a unit that holds several
    # A split context: the second step, and its cost for each split.
    "decode.split_us_ghz": Prior(4.9, 0.4),
    "decode.split_us_ghz.intel": Prior(1.0, 1.0),
    "decode.merge_us_ghz": Prior(0.1, 0.4),
    "decode.merge_us_ghz.fa2": Prior(4.0, 0.5),  # a combine kernel instead of the last item
    "decode.copy_us_ghz": Prior(10.5, 0.4),
    "decode.odd_us_ghz": Prior(14.0, 0.4),
    "decode.odd_us_ghz.flashinfer": Prior(1.0),
    "decode.wide": Prior(2.0, 0.4),  # factor on a wide head's tile with a narrow cache
    "decode.cache_rate": Prior(17.0, 0.4),  # bytes per clock and unit from the last-level cache
    "decode.hidden": Prior(0.3, 0.5),  # how far prologues hide behind streaming
    # Prefill. Share of the dense 16-bit peak of full tiles.
    "prefill.compute": Prior(0.65, 0.4),
    **_factors("prefill.compute", ("fa2", "mla")),
    "prefill.compute.hopper": Prior(1.2),  # asynchronous warp-group products (FlashAttention-3)
    "prefill.compute.fp8": Prior(0.9),
    "prefill.compute.mla.fp8": Prior(1.0),
    "prefill.exp": Prior(0.5, 0.4),  # exponentials that are not hidden, of 16 per clock and unit
    "prefill.item_us_ghz": Prior(2.3, 0.4),
    **_factors("prefill.item_us_ghz", ("fa2", "fa3", "mla")),
    "prefill.floor_us": Prior(2.3, 0.4),
    "prefill.floor_us_ghz": Prior(10.5, 0.4),
    "prefill.floor": Prior(1.0, 0.0),
    **_factors("prefill.floor", ("fa2", "flashinfer", "triton"), 0.4),
    "prefill.floor.fa3": Prior(1.3, 0.4),  # a second kernel prepares the schedule
    "prefill.floor.mla": Prior(1.5, 0.4),  # rotary and latent appended by a kernel before
    "prefill.floor.fp8": Prior(1.1),
    # Passes over memory: queries and outputs, and keys and values as they go to pages and back.
    "prefill.query_passes": Prior(0.6, 0.4),
    "prefill.kv_passes": Prior(3.4, 0.4),
    "prefill.kv_passes.mla": Prior(1.0, 0.4),
    "prefill.kv_passes.mla.fp8": Prior(1.0, 0.4),
    # Decode on a latent cache.
    "mla.share": Prior(1.0, 0.2),
    "mla.compute": Prior(1.05, 0.4),
    "mla.compute.mla_hopper.fp8": Prior(1.1),
    "mla.item_us_ghz": Prior(17.0, 0.4),
    "mla.floor_us": Prior(3.5, 0.4),
    "mla.floor_us_ghz": Prior(0.6, 0.4),
    "mla.split_us_ghz": Prior(6.6, 0.4),
    "mla.token_clocks": Prior(130.0, 0.4),  # one key of an item that is not split
    "mla.token_compute": Prior(0.5, 0.4),  # of its padded products' clocks, on top
    "mla.convert_us_ghz": Prior(9.0, 0.4),
    "mla.convert_share": Prior(0.10, 0.4),  # of bandwidth, while a narrow cache is converted
    "mla.hidden": Prior(0.5, 0.5),
    # A whole step: matrix products, small kernels of a layer, the host, collectives.
    "step.share": Prior(0.85, 0.05),
    "step.compute": Prior(0.70, 0.05),  # best matmul on H100 0.80 (stas00/ml-engineering)
    "step.compute.fp8": Prior(0.85, 0.2),
    "step.layer_us": Prior(12.0, 0.4),
    "step.layer_clock_ghz": Prior(1.98, 0.0),  # at which a layer's small kernels were timed
    "step.host_us": Prior(300.0, 0.5),
    "step.sequence_us": Prior(10.0, 0.7),
    "step.reduce_us": Prior(5.0, 0.5),
    "step.reduce_hop_us": Prior(4.0, 0.5),
    "step.link_share": Prior(0.8, 0.0),  # 0.78-0.82 of NVLink (stas00/ml-engineering network)
    # Devices of a class nobody timed (shares by class come with the catalog).
    "roofline.share": Prior(0.6, 0.0),
    "roofline.compute": Prior(0.35, 0.0),
    "roofline.floor_us": Prior(10.0, 0.0),
}


def neutral() -> dict[str, Prior]:
    """The same priors without any opinion on kernel families: every factor on a base is 1."""
    return {k: p._replace(value=1.0) if k.count(".") > 1 else p for k, p in PRIORS.items()}


class Coefficients:
    """Reads a coefficient for a kernel and a cache type: the base times its factors."""

    __slots__ = ("_families", "_values", "narrow")

    def __init__(self, device: Device, families: tuple[str, ...] = (), narrow: bool = False):
        self._values: Mapping[str, float] = device.coefficients
        self._families = families
        self.narrow = narrow

    def __call__(self, key: str) -> float:
        """``key`` times ``key.family`` for each family; for a narrow cache also each ``.fp8``."""
        found = self._one(key)
        names = [f"{key}.{family}" for family in self._families]
        if self.narrow:
            names += [f"{key}.fp8", *(f"{name}.fp8" for name in names)]
        for name in names:
            if name in self._values or name in PRIORS:
                found *= self._one(name)
        return found

    def _one(self, key: str) -> float:
        value = self._values.get(key)
        return PRIORS[key].value if value is None else value

    def get(self, key: str, default: float) -> float:
        """A coefficient that may be absent."""
        return self._values.get(key, default)
