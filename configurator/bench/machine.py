"""The machine that measures: its ceilings, the device that predicts for it, its versions."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch

from configurator.attention.device import pick_device
from configurator.bench.ceilings import Ceilings, measure
from configurator.core.case import Device
from configurator.host import detect, host_device

__all__ = ["Machine", "default_device", "environment", "machine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``target`` predicts; ``ceilings`` were measured in this process; ``cache_bytes`` is LLC."""

    torch_device: str
    target: Device
    ceilings: Ceilings
    cache_bytes: int

    @property
    def limit_bytes_per_s(self) -> float:
        """What no reading can pass: the vendor's figure on a GPU, else 1.3 times what was read.

        0 where other programs disturbed the reading: then there is no limit to hold against.
        """
        if self.torch_device.startswith("cuda") and self.target.verified:
            return max(self.target.bandwidth_bytes_per_s, self.ceilings.read_bytes_per_s)
        return 1.3 * self.ceilings.read_bytes_per_s if self.ceilings.calm else 0.0

    @property
    def limit_flops_per_s(self) -> float:
        """What no arithmetic can pass, in whatever type; the same rule as for reading."""
        best = max(self.ceilings.flops_per_s.values(), default=0.0)
        if self.torch_device.startswith("cuda") and self.target.verified:
            return max(best, *self.target.flops_per_s.values())
        return 1.3 * best if self.ceilings.calm else 0.0


def default_device() -> str:
    """``cuda`` or ``mps`` where torch has one that works, else ``cpu``."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


@cache
def machine(torch_device: str) -> Machine:
    """The machine behind ``torch_device``; its ceilings are measured once a process."""
    pick_device(torch_device)
    facts = detect()
    if torch_device.startswith("cuda"):
        properties: Any = torch.cuda.get_device_properties(torch_device)
        cache_bytes = int(getattr(properties, "L2_cache_size", 0))
    else:
        cache_bytes = facts.last_level_cache_bytes
    return Machine(
        torch_device=torch_device,
        target=host_device(facts),
        ceilings=measure(torch_device, cache_bytes),
        cache_bytes=cache_bytes,
    )


def _priority() -> str:
    """``normal``, or ``real-time`` where other programs had to stand back; empty if unknown."""
    if not hasattr(os, "sched_getscheduler"):
        return ""
    try:
        urgent = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    except OSError:
        return ""
    return "real-time" if urgent else "normal"


def environment(torch_device: str, ceilings: Ceilings | None = None) -> dict[str, Any]:
    """What a reader needs to judge the figures: versions, threads, device, load, ceilings."""
    facts = detect()
    name = facts.cpu
    if torch_device.startswith("cuda"):
        name = torch.cuda.get_device_name(torch_device)
    found = {
        "device": torch_device,
        "device_name": name,
        "cpu": facts.cpu,
        "cores": facts.cores,
        "memory_bytes": facts.memory_bytes,
        "caches_bytes": {f"L{level}": size for level, size in facts.caches_bytes},
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or torch.version.hip or "",
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "priority": _priority(),
    }
    if ceilings is not None:
        found["ceilings"] = asdict(ceilings)
    return found
