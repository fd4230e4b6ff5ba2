"""From what a request says of its target to a device: by name, by figures, or this machine."""

from __future__ import annotations

from typing import Any

from configurator.catalog import targets
from configurator.core.case import Device
from configurator.core.errors import UsageError
from configurator.core.units import format_bytes, parse_bandwidth, parse_bytes, parse_flops

__all__ = ["describe", "device_of", "resolve"]


def resolve(
    target: str | None, *, memory: int | None, bandwidth: float | None, tflops: float | None
) -> Device | None:
    """The device asked for, or ``None`` where nothing describes one.

    Raises ``UsageError`` for an unknown name or a description without memory or bandwidth.
    """
    base: Device | str | None = target
    if target is not None and str(target).strip().lower() == "host":
        from configurator.host import host_device

        base = host_device()
    if base is None and memory is None and bandwidth is None and tflops is None:
        return None
    return targets.custom(
        base=base,
        memory=None if memory is None else _bytes_text(memory),
        bandwidth=None if bandwidth is None else f"{bandwidth / 1e9:.12g}GB/s",
        tflops=None if tflops is None else f"{tflops / 1e12:.12g}",
    )


def device_of(given: dict[str, Any]) -> Device | None:
    """The target that ``target``, ``memory``, ``bandwidth`` and ``tflops`` describe, as typed.

    They are taken out of ``given``. Raises ``UsageError`` as :func:`resolve` does.
    """
    memory, bandwidth, tflops = (given.pop(k, None) for k in ("memory", "bandwidth", "tflops"))
    return resolve(
        given.pop("target", None),
        memory=None if memory is None else parse_bytes(memory),
        bandwidth=None if bandwidth is None else parse_bandwidth(bandwidth),
        tflops=None if tflops is None else parse_flops(tflops),
    )


def _bytes_text(value: int) -> str:
    short = format_bytes(value).replace(" ", "")
    try:
        return short if parse_bytes(short) == value else f"{value}B"
    except UsageError:  # rounded to a part of a byte
        return f"{value}B"


def describe(device: Device | None) -> dict[str, Any]:
    """What a report says of its target; rates in FLOP/s, per device."""
    if device is None:
        return {}
    return {
        "name": device.name if device.count == 1 else f"{device.count}x{device.name}",
        "title": device.title or device.name,
        "device": device.name,
        "count": device.count,
        "nodes": device.nodes,
        "kind": device.kind,
        "memory_bytes": device.memory_bytes,
        "bandwidth_bytes_per_s": device.bandwidth_bytes_per_s,
        "flops_per_s": dict(device.flops_per_s),
        "verified": device.verified,
        "sources": list(device.sources),
        "note": device.note,
    }
