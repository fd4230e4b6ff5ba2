"""Which kernels a device can run, told from its vendor, kind and architecture."""

from __future__ import annotations

import re
from typing import cast

from configurator.core.case import Case, Device

_SM = re.compile(r"sm_?(\d{2,3})")


def named(case: Case) -> bool:
    """Whether the case names a device at all."""
    return case.device is not None


def device(case: Case) -> Device:
    """The device, known to be named because the rule applies to named ones only."""
    return cast(Device, case.device)


def compute_capability(case: Case) -> int:
    """NVIDIA's number: 75 Turing, 80-89 Ampere and Ada, 90 Hopper, 100-121 Blackwell; else 0."""
    match = _SM.match(case.device.architecture.lower()) if case.device else None
    return int(match[1]) if match else 0


def is_nvidia(case: Case) -> bool:
    """An NVIDIA GPU."""
    return compute_capability(case) > 0


def runs_flash_attention_2(case: Case) -> bool:
    """Ampere, Ada, and the Blackwell of cards and workstations: FlashAttention-2 is the kernel."""
    return 80 <= compute_capability(case) < 90 or compute_capability(case) in (120, 121)


def is_hopper(case: Case) -> bool:
    """H100, H200, H800, GH200: FlashAttention-3 and FlashMLA were written for it."""
    return 90 <= compute_capability(case) < 100


def is_datacenter_blackwell(case: Case) -> bool:
    """B200, GB200, B300 and their like."""
    return 100 <= compute_capability(case) < 120


def is_amd(case: Case) -> bool:
    """An AMD GPU."""
    return case.device is not None and case.device.vendor == "AMD" and not is_cpu(case)


def is_apple(case: Case) -> bool:
    """Apple's GPU, programmed with Metal."""
    return case.device is not None and case.device.vendor == "Apple"


def is_cpu(case: Case) -> bool:
    """A machine that computes on its CPU cores."""
    if case.device is None:
        return False
    name = case.device.architecture.lower()
    return case.device.kind == "cpu-server" or "cpu" in name or name.startswith(("x86", "armv"))


def is_neuron(case: Case) -> bool:
    """AWS Trainium or Inferentia."""
    return case.device is not None and case.device.vendor == "AWS"


def is_tpu(case: Case) -> bool:
    """A Google TPU."""
    return case.device is not None and case.device.kind == "tpu" and case.device.vendor == "Google"


def is_card_of_a_person(case: Case) -> bool:
    """A machine that people own, where llama.cpp is the usual engine."""
    kinds = ("consumer-gpu", "laptop", "edge", "phone")
    return case.device is not None and case.device.kind in kinds


def name(case: Case) -> str:
    """What to call the device in a sentence."""
    return (case.device.title or case.device.name) if case.device else "no device"
