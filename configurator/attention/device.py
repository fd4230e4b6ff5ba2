"""Which device computes: torch's name of one that this machine has."""

from __future__ import annotations

import re

import torch

from configurator.core.errors import MissingError, unknown

__all__ = ["pick_device"]


def pick_device(name: str = "auto") -> str:
    """``auto`` is a CUDA device where there is one, else the CPU; other names are checked.

    Raises ``UsageError`` for a name that means nothing, ``MissingError`` for an absent one.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"(cpu|cuda|mps)(:(0|[1-9]\d?\d?))?", str(name), re.ASCII):
        raise unknown("device", str(name), ("auto", "cpu", "cuda", "mps"), "auto picks one")
    kind, _, index = name.partition(":")
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
