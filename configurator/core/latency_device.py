"""What latency needs of a device: rates, units and clock, with the gaps filled where derivable."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Device
from configurator.core.dtypes import CacheType

__all__ = ["Machine", "machine"]

# Dense bf16 FLOP per clock and streaming multiprocessor (NVIDIA architecture white papers), and
# the boost clock in GHz of a typical card, for devices whose own figures are missing.
_PER_UNIT = {
    "sm_70": (1024, 1.53), "sm_75": (1024, 1.59), "sm_80": (2048, 1.41), "sm_86": (1024, 1.70),
    "sm_87": (1024, 1.30), "sm_89": (1024, 2.50), "sm_90": (4096, 1.83), "sm_100": (8192, 1.90),
    "sm_103": (8192, 1.90), "sm_110": (8192, 1.57), "sm_120": (1024, 2.43), "sm_121": (1024, 2.4),
}  # fmt: skip
_TWO_PARTITIONS = ("sm_80", "sm_90", "sm_100", "sm_103")  # a unit reaches half of L2 directly


@dataclass(frozen=True, slots=True)
class Machine:
    """One device as the latency forms see it. ``units`` is 0 where nothing is known of them."""

    group: str
    bandwidth: float
    peak: float
    units: float
    clock_ghz: float
    cache_bytes: float
    cache_share: float
    sustained: float


def machine(device: Device, kv: CacheType) -> Machine:
    """Rates of ``device``; arithmetic runs in 16 bit unless the cache is fp8 or narrower.

    ``peak`` is 0 where the device has no rate for 16-bit products: latency is then unknown.
    """
    peak, _ = device.rate("bf16")
    arch = device.architecture
    per_clock, typical = _PER_UNIT.get(arch, (0, 0.0))
    clock = device.clock_hz / 1e9 or typical
    units = float(device.n_units)
    if not units and per_clock and clock:
        units = max(1.0, round(peak / (clock * 1e9 * per_clock)))
    vendor = device.vendor.casefold()
    group = "nvidia" if vendor == "nvidia" or arch.startswith("sm_") else "other"
    if vendor == "intel" and "gpu" in device.kind:
        group = "intel"
    return Machine(
        group=group if units and clock else "other",
        bandwidth=float(device.bandwidth_bytes_per_s),
        peak=peak,
        units=units,
        clock_ghz=clock,
        cache_bytes=float(device.cache_bytes),
        cache_share=0.7 if arch in _TWO_PARTITIONS else 1.0,
        sustained=1.0,
    )
