"""Figures worked out from others when a device is loaded, never stored as if they were read."""

from __future__ import annotations

__all__ = ["derived_units"]

# Dense bf16 FLOP per SM and clock cycle, with FP32 accumulation. GeForce cards accumulate in
# FP32 at half of what the same chip does on a workstation card.
_FLOPS_PER_SM = {
    "sm_75": 1024,
    "sm_80": 2048,
    "sm_86": 1024,
    "sm_89": 1024,
    "sm_90": 4096,
    "sm_100": 8192,
    "sm_103": 8192,
    "sm_120": 1024,
}
_RATING_CLOCK_GHZ = {"sm_90": 1.83}  # Hopper's rates are printed for less than its boost clock


def derived_units(
    bf16_dense_tflops: float, boost_clock_ghz: float, architecture: str, kind: str
) -> int:
    """Streaming multiprocessors of an NVIDIA part: ``peak / (clock * FLOP per SM and cycle)``.

    Good to about 6 % on SXM modules, GeForce and workstation cards. Where a part's peak is printed
    for less than its boost clock (PCIe and NVL Hopper, B300) it counts up to 16 % too few. 0, for
    unknown, on other architectures or without a peak and a clock.

    >>> derived_units(989, 1.98, "sm_90", "datacenter-gpu")
    132
    >>> derived_units(165.2, 2.52, "sm_89", "consumer-gpu")
    128
    """
    per_sm = _FLOPS_PER_SM.get(architecture, 0)
    clock = _RATING_CLOCK_GHZ.get(architecture, boost_clock_ghz)
    if not (per_sm and clock and bf16_dense_tflops and boost_clock_ghz):
        return 0
    if kind in ("consumer-gpu", "laptop") and architecture in ("sm_86", "sm_89", "sm_120"):
        per_sm //= 2
    return round(bf16_dense_tflops * 1e3 / (clock * per_sm))
