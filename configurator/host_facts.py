"""What this machine is: processor, cores, memory, caches, accelerators. Reads, never measures.

Every reader takes the root of the file system (or a command's text), so that a test can hand it
another machine's. What cannot be read stays 0 or empty: unknown, not guessed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Accelerator", "Host", "available_bytes", "detect", "nvidia"]

_FEATURES = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "asimd", "sve", "bf16", "i8mm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """``kind`` is ``cuda``, ``rocm`` or ``mps``; memory is of one of ``count`` equal devices."""

    kind: str
    name: str
    memory_bytes: int = 0
    count: int = 1
    architecture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This machine. ``cores`` may be used by this process; ``caches_bytes`` is by level, summed."""

    system: str
    machine: str
    cpu: str
    cores: int
    memory_bytes: int
    caches_bytes: tuple[tuple[int, int], ...] = ()
    features: tuple[str, ...] = ()
    clock_hz: float = 0.0
    accelerators: tuple[Accelerator, ...] = ()

    @property
    def last_level_cache_bytes(self) -> int:
        """The largest level's caches together; 0 where unknown."""
        return max(self.caches_bytes, default=(0, 0))[1]


Run = Callable[[list[str]], str]


def _run(command: list[str]) -> str:
    """What a command prints; empty where it is not there, fails or takes longer than 5 s."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def size(text: str) -> int:
    """Bytes of a size as the kernel writes it: ``307200K``, ``2M``; 0 where it is not one.

    >>> size("48K")
    49152
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    if match is None:
        return 0
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def _caches(root: Path) -> tuple[tuple[int, int], ...]:
    """Data caches by level, each counted once however many processors share it."""
    seen: dict[tuple[int, str], int] = {}
    for index in sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*")):
        if _read(index / "type") not in ("Data", "Unified"):
            continue
        level = _read(index / "level")
        shared = _read(index / "shared_cpu_list")
        if level.isdecimal():
            seen[int(level), shared] = size(_read(index / "size"))
    levels = sorted({level for level, _ in seen})
    return tuple((n, sum(b for (level, _), b in seen.items() if level == n)) for n in levels)


def _field(text: str, *names: str) -> str:
    for name in names:
        match = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", text, re.MULTILINE)
        if match:
            return match[1].strip()
    return ""


def _limit(root: Path) -> int:
    """The memory a container allows; 0 where there is no limit."""
    for place in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(root / place)
        if text.isdecimal() and int(text) < 1 << 60:
            return int(text)
    return 0


def _allowed_cores(root: Path) -> int:
    """Processors this process may use: its affinity, and a container's share of time."""
    try:
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    except OSError:
        cores = os.cpu_count() or 1
    quota = _read(root / "sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdecimal() and quota[1].isdecimal():
        cores = min(cores, max(1, round(int(quota[0]) / int(quota[1]))))
    return cores


def _linux(root: Path) -> tuple[str, int, tuple[str, ...], float]:
    cpuinfo = _read(root / "proc/cpuinfo")
    memory = int((_field(_read(root / "proc/meminfo"), "MemTotal") or "0 kB").split()[0]) << 10
    limit = _limit(root)
    flags = set(_field(cpuinfo, "flags", "Features").split())
    fastest = _read(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    clock = float(fastest) * 1e3 if fastest.isdecimal() else 0.0
    if not clock:
        clock = float(_field(cpuinfo, "cpu MHz") or 0) * 1e6
    name = _field(cpuinfo, "model name", "Model", "Hardware")
    features = tuple(f for f in _FEATURES if f in flags)
    return name, min(memory, limit) if limit else memory, features, clock


def _mac(run: Run) -> tuple[str, int, tuple[tuple[int, int], ...]]:
    def value(key: str) -> str:
        return run(["sysctl", "-n", key]).strip()

    caches = []
    for level, key in ((1, "hw.l1dcachesize"), (2, "hw.l2cachesize"), (3, "hw.l3cachesize")):
        if value(key).isdecimal() and int(value(key)):
            caches.append((level, int(value(key))))
    memory = value("hw.memsize")
    return (
        value("machdep.cpu.brand_string"),
        int(memory) if memory.isdecimal() else 0,
        tuple(caches),
    )


def nvidia(text: str) -> tuple[Accelerator, ...]:
    """GPUs from ``nvidia-smi --query-gpu=name,memory.total,compute_cap --format=csv,noheader``.

    Equal cards are counted together. Lines that are not understood are left out.
    """
    found: dict[tuple[str, int, str], int] = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3 or not (match := re.fullmatch(r"(\d+) MiB", parts[1])):
            continue
        capability = parts[2].replace(".", "")
        arch = f"sm_{capability}" if capability.isdecimal() else ""
        key = (parts[0], int(match[1]) << 20, arch)
        found[key] = found.get(key, 0) + 1
    return tuple(
        Accelerator(kind="cuda", name=n, memory_bytes=m, architecture=a, count=c)
        for (n, m, a), c in found.items()
    )


def _accelerators(run: Run, system: str, machine: str, cpu: str) -> tuple[Accelerator, ...]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader"]
    if found := nvidia(run(query)):
        return found
    rocm = run(["rocm-smi", "--showproductname", "--csv"])
    cards = [line.split(",")[1].strip() for line in rocm.splitlines()[1:] if line.count(",")]
    if cards:
        return (Accelerator(kind="rocm", name=cards[0], count=cards.count(cards[0])),)
    if system == "Darwin" and machine == "arm64":
        return (Accelerator(kind="mps", name=cpu or "Apple GPU"),)
    return ()


def detect(root: Path = Path("/"), run: Run = _run) -> Host:
    """This machine's facts, from files and a few commands; no library is loaded."""
    system, machine = platform.system(), platform.machine()
    caches: tuple[tuple[int, int], ...] = ()
    features: tuple[str, ...] = ()
    clock = 0.0
    if system == "Linux" or root != Path("/"):
        cpu, memory, features, clock = _linux(root)
        caches = _caches(root)
    elif system == "Darwin":
        cpu, memory, caches = _mac(run)
    else:
        cpu, memory = platform.processor(), 0
    return Host(
        system=system,
        machine=machine,
        cpu=cpu or platform.processor() or machine,
        cores=_allowed_cores(root),
        memory_bytes=memory,
        caches_bytes=caches,
        features=features,
        clock_hz=clock,
        accelerators=_accelerators(run, system, machine, cpu),
    )


def available_bytes(root: Path = Path("/"), run: Run = _run) -> int:
    """Main memory that may be taken now without swapping; 0 where unknown."""
    text = _field(_read(root / "proc/meminfo"), "MemAvailable")
    if text:
        free = int(text.split()[0]) << 10
        limit = _limit(root)
        used = _read(root / "sys/fs/cgroup/memory.current")
        if limit and used.isdecimal():
            free = min(free, max(0, limit - int(used)))
        return free
    pages = run(["vm_stat"])
    match = re.search(r"page size of (\d+) bytes", pages)
    counts = re.findall(r"^Pages (?:free|inactive|speculative):\s+(\d+)", pages, re.MULTILINE)
    return int(match[1]) * sum(map(int, counts)) if match else 0
