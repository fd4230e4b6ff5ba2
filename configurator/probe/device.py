"""What a result should be remembered with."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
import torch

__all__ = ["environment"]


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
