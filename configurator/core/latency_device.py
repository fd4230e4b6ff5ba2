"""What latency needs of a device: rates, units and clock, with gaps filled where derivable."""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Device

__all__ = ["Machine", "machine"]

# Dense 16-bit FLOP per clock and streaming multiprocessor, and the boost clock in GHz of a typical
# card, for devices whose own units or clock are missing (NVIDIA architecture white papers).
_PER_UNIT = {
    "sm_70": (1024, 1.53), "sm_75": (1024, 1.59), "sm_80": (2048, 1.41), "sm_86": (1024, 1.70),
    "sm_87": (1024, 1.30), "sm_89": (1024, 2.50), "sm_90": (4096, 1.83), "sm_100": (8192, 1.90),
    "sm_103": (8192, 1.90), "sm_110": (8192, 1.57), "sm_120": (1024, 2.43), "sm_121": (1024, 2.4),
}  # fmt: skip
# Shared memory of one multiprocessor in KiB (CUDA programming guide, compute capabilities).
_SHARED_KIB = {"sm_70": 96, "sm_75": 64, "sm_80": 164, "sm_87": 164, "sm_90": 228, "sm_100": 228,
               "sm_103": 228, "sm_110": 228}  # fmt: skip
_INTEL = ("xe2", "xe-hpg")  # Arc; the data-centre part has other units and software
_TWO_PARTITIONS = ("sm_80", "sm_90", "sm_100", "sm_103")  # a unit reaches half of L2 directly


@dataclass(frozen=True, slots=True)
class Machine:
    """One device as the latency forms see it.

    ``group`` is ``nvidia`` or ``intel`` (timed classes) or ``other``; ``peak`` is NaN where no
    16-bit rate is known, and so is every time then. ``cache_share`` is what of the last-level
    cache holds a working set.
    """

    group: str
    architecture: str
    bandwidth: float
    peak: float
    units: float
    clock: float
    cache_bytes: float
    cache_share: float
    shared_kib: float

    @property
    def us(self) -> float:
        """Seconds of one us x GHz on this clock: what a coefficient per clock is multiplied by."""
        return 1e3 / self.clock

    @property
    def flops_per_unit_clock(self) -> float:
        """Dense 16-bit FLOP per clock of one unit."""
        return self.peak / (self.units * self.clock)


def machine(device: Device) -> Machine:
    """The figures of ``device``; arithmetic runs in 16 bit whatever the cache's type."""
    peak = device.rate("fp16")[0] or float("nan")
    arch = device.architecture
    per_clock, typical = _PER_UNIT.get(arch, (0, 0.0))
    clock = device.clock_hz or typical * 1e9
    units = float(device.n_units)
    if not units and per_clock and clock and peak == peak:
        units = max(1.0, round(peak / (clock * per_clock)))
    timed = "nvidia" if arch.startswith("sm_") else "intel" if arch in _INTEL else "other"
    return Machine(
        group=timed if units and clock else "other",
        architecture=arch,
        bandwidth=float(device.bandwidth_bytes_per_s),
        peak=peak,
        units=units,
        clock=clock,
        cache_bytes=float(device.cache_bytes),
        cache_share=0.7 if arch in _TWO_PARTITIONS else 1.0,
        shared_kib=float(_SHARED_KIB.get(arch, 100)),
    )
