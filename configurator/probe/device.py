"""Which device trains, and what the run should be remembered with."""

from __future__ import annotations

import platform
import re
import sys
from typing import Any

import numpy as np
import torch

from configurator.core.errors import MissingError, unknown

__all__ = ["environment", "pick_device"]


def pick_device(name: str = "auto") -> str:
    """``auto`` is a CUDA device where there is one, else the CPU; other names are checked.

    Raises ``UsageError`` for a name that means nothing, ``MissingError`` for an absent one.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = name.partition(":")
    if not re.fullmatch(r"(cpu|cuda|mps)(:(0|[1-9]\d?\d?))?", name, re.ASCII):
        raise unknown("device", name, ("auto", "cpu", "cuda", "mps"), hint="--device auto picks")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }[kind]
    if int(index or 0) >= present:
        raise MissingError(
            f"--device {name}: this machine has {present} such devices; use --device cpu"
        )
    return name


def environment(device: str) -> dict[str, Any]:
    """Versions and machine of a result, enough to repeat it."""
    return {
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }
