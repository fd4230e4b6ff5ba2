"""This machine as a target: what it is, what it was measured to do, and the device that makes.

``--target host`` is answered here without torch. ``calibrate`` measures the machine once and
keeps a profile; predictions for ``host`` then come from it. Without a profile a known GPU is
looked up in the catalog and a processor gets class priors that are marked as not verified.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from configurator.catalog.classes import memory_share
from configurator.core.case import Device
from configurator.core.errors import MissingError, UsageError
from configurator.files import write_whole
from configurator.host_facts import Accelerator, Host, available_bytes, detect

__all__ = [
    "Accelerator",
    "Host",
    "Profile",
    "available_bytes",
    "detect",
    "fingerprint",
    "host_device",
    "load_profile",
    "match",
    "profile_path",
    "save_profile",
]

PROFILE_VERSION = 1

# Class priors of a processor nobody measured. A core of this project's own test machine reads
# 12 GB/s (outputs/measurements); two channels of DDR4-3200 carry 2 x 3200 MT/s x 8 bytes.
_CORE_BYTES_PER_S = 12e9
_TWO_CHANNELS_BYTES_PER_S = 51.2e9
_CLOCK_HZ = 2.5e9
# FP32 FLOPs of a cycle: two fused multiply-adds of the vector's lanes; one AMX tile product of
# bf16 is 16 x 16 x 32 multiply-adds in 16 cycles (Intel's optimisation manual, chapter on AMX).
_FLOPS_PER_CYCLE = {"avx512f": 64.0, "avx2": 32.0, "asimd": 16.0}
_BF16_PER_CYCLE = {"amx_bf16": 1024.0, "avx512_bf16": 128.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What ``calibrate`` measured: rates of this machine and the coefficients fitted to it.

    ``flops_per_s`` is by dtype; ``coefficients`` are keys of ``Device.coefficients``; ``error``
    is the median relative error of the prediction on points that were not fitted, by phase.
    """

    fingerprint: str
    created: str
    device: str
    read_bytes_per_s: float
    copy_bytes_per_s: float
    flops_per_s: Mapping[str, float]
    coefficients: Mapping[str, float]
    error: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    version: int = PROFILE_VERSION


def fingerprint(host: Host) -> str:
    """A short name for a machine as far as speed goes: another processor or GPU, another name."""
    devices = [(a.kind, a.name, a.count) for a in host.accelerators]
    text = repr((host.cpu, host.cores, host.machine, host.caches_bytes, devices))
    return sha256(text.encode()).hexdigest()[:16]


def profile_path() -> Path:
    """Where the profile is kept: ``mha-configurator/host.json`` in the user's config folder."""
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "mha-configurator" / "host.json"


def save_profile(profile: Profile, path: Path | None = None) -> Path:
    """Keep a profile, whole or not at all; raises ``UsageError`` where it cannot be written."""
    target = path or profile_path()
    values = {name: getattr(profile, name) for name in profile.__dataclass_fields__}
    plain = {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}
    text = json.dumps(plain, indent=2, sort_keys=True, allow_nan=False) + "\n"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    except OSError as error:
        raise UsageError(
            f"the profile {target} cannot be written ({error.strerror}); set XDG_CONFIG_HOME"
        ) from None
    return target


def load_profile(path: Path | None = None) -> Profile | None:
    """The kept profile; None where there is none or it is of another version.

    Raises ``UsageError`` for a file that is not a profile.
    """
    target = path or profile_path()
    try:
        data = target.read_bytes()
    except OSError:
        return None
    try:
        found = json.loads(data)
        if found["version"] != PROFILE_VERSION:
            return None
        profile = Profile(**found)
        _check(profile)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(
            f"{target} is not a profile of this machine; delete it and run calibrate"
        ) from None
    return profile


def _check(profile: Profile) -> None:
    """Raise ``TypeError`` or ``ValueError`` for a profile that no calibration writes."""
    texts = (profile.fingerprint, profile.created, profile.device)
    tables = (profile.flops_per_s, profile.coefficients, profile.error)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name is not a text")
    if not all(isinstance(table, dict) for table in (*tables, profile.environment)):
        raise TypeError("a table is not one")
    rates = [profile.read_bytes_per_s, profile.copy_bytes_per_s, *profile.flops_per_s.values()]
    others = [*profile.coefficients.values(), *profile.error.values()]
    if not all(type(n) in (int, float) and math.isfinite(n) for n in (*rates, *others)):
        raise TypeError("a figure is not a number")
    if min(rates) <= 0:
        raise ValueError("a rate is not above zero")


def match(name: str, memory_bytes: int = 0) -> Device | None:
    """The catalog's device behind a driver's name such as ``NVIDIA H100 80GB HBM3``; else None.

    Every part of the model's short name must be in the driver's; of several, the most specific
    and then the one whose memory is nearest wins.
    """
    from configurator.catalog.targets import devices

    said = set(re.findall(r"[a-z0-9]+", name.casefold()))
    # Drivers leave the socket out of the name of the usual card: it has HBM3 or a plain name.
    found = []
    for device in devices():
        parts = [p for p in device.name.split("-") if not re.fullmatch(r"\d+gb|apple", p)]
        form = {p for p in parts if re.fullmatch(r"sxm\d?|pcie|nvl|hbm3e|\d\d", p)}
        model = set(parts) - form
        if model and model <= said:
            apart = abs(device.memory_bytes - memory_bytes) if memory_bytes else 0
            socket = bool(form & said) or any(p.startswith("sxm") for p in form) * 0.5
            found.append((-len(model), -socket, apart, device.name, device))
    return min(found)[-1] if found else None


def _processor(host: Host) -> Device:
    """A processor from what is known of it without measuring: class priors, not verified."""
    clock = host.clock_hz or _CLOCK_HZ
    per_cycle = next((v for k, v in _FLOPS_PER_CYCLE.items() if k in host.features), 8.0)
    short = next((v for k, v in _BF16_PER_CYCLE.items() if k in host.features), per_cycle)
    share = memory_share("cpu-server")
    vendor = next(
        (
            v
            for v in ("Intel", "AMD", "Apple", "Ampere", "AWS")
            if v.casefold() in host.cpu.casefold()
        ),
        "",
    )
    if not host.memory_bytes:
        raise MissingError(
            "this system does not say how much memory it has; "
            "describe it with --memory 16GiB --bandwidth 50GB/s"
        )
    return Device(
        name="host",
        title=f"this machine: {host.cpu}, {host.cores} cores",
        vendor=vendor,
        kind="cpu-server",
        memory_bytes=host.memory_bytes,
        bandwidth_bytes_per_s=min(host.cores * _CORE_BYTES_PER_S, _TWO_CHANNELS_BYTES_PER_S),
        flops_per_s={"fp32": host.cores * clock * per_cycle, "bf16": host.cores * clock * short},
        n_units=host.cores,
        cache_bytes=host.last_level_cache_bytes,
        clock_hz=clock,
        architecture="arm-cpu" if host.machine in ("arm64", "aarch64") else "x86-cpu",
        usable_share=share.usable_share,
        overhead_bytes=share.overhead_bytes,
        verified=False,
        sources=("class priors of a processor; not measured",),
        note="rates are class priors: run calibrate to measure this machine (two minutes)",
    )


def _accelerated(host: Host, card: Accelerator) -> Device | None:
    found = match(card.name, card.memory_bytes)
    if found is None:
        return None
    unified = card.kind == "mps"
    memory = host.memory_bytes if unified else card.memory_bytes or found.memory_bytes
    return replace(
        found,
        name="host",
        title=f"this machine: {card.name} ({found.name})",
        memory_bytes=memory or found.memory_bytes,
        count=card.count,
        note=f"figures of {found.name} from the catalog; run calibrate to measure them",
    )


def host_device(host: Host | None = None, profile: Profile | None = None) -> Device:
    """This machine as a target: measured where a profile of it is kept, else from what is known.

    Args:
        host: facts to use instead of this machine's.
        profile: profile to use instead of the kept one.

    Raises:
        UsageError: the kept file is not a profile.
        MissingError: a system that does not say how much memory it has.
    """
    facts = host or detect()
    kept = profile if profile is not None else load_profile()
    known = kept is not None and kept.fingerprint == fingerprint(facts)
    on_card = facts.accelerators and not (known and kept is not None and kept.device == "cpu")
    base = _accelerated(facts, facts.accelerators[0]) if on_card else None
    base = base or _processor(facts)
    if kept is None:
        return base
    if not known:
        return replace(base, note=f"{base.note}; the kept profile is of another machine")
    errors = {f"own.{phase}.error": value for phase, value in kept.error.items()}
    return replace(
        base,
        bandwidth_bytes_per_s=kept.read_bytes_per_s,
        flops_per_s={**base.flops_per_s, **kept.flops_per_s},
        coefficients={**base.coefficients, **kept.coefficients, **errors},
        verified=True,
        sources=(f"measured on this machine by calibrate, {kept.created}",),
        note=f"measured with {kept.environment.get('torch', 'torch')} by calibrate",
    )
