"""What this machine can do at best, measured in the same run as what is compared with it.

Reading: the fastest of a dot product, a matrix-vector product and a sum over more than the
last-level cache. Copying: one large array to another, both counted. Products: large square
matrices in each type. Overhead: one small operation from call to result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from configurator.bench.clock import Timer, judge, take
from configurator.bench.timers import timer_for

__all__ = ["Ceilings", "measure"]

_LEAST = 1 << 28
_SQUARE = {"cpu": 1024, "mps": 2048, "cuda": 8192}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Bytes per second read and copied, FLOPs per second by dtype, seconds of a tiny operation.

    ``reads`` are all the ways reading was tried; ``read_bytes_per_s`` is the fastest. ``calm`` is
    whether the machine was left alone while reading: else the figures are no ceilings.
    """

    read_bytes_per_s: float
    copy_bytes_per_s: float
    flops_per_s: dict[str, float]
    overhead_s: float
    reads: dict[str, float]
    working_set_bytes: int
    calm: bool = True


def _median(call: Callable[[int], Any], timer: Timer, limit_s: float) -> tuple[float, bool]:
    samples = take(call, timer, limit_s=limit_s)
    return judge(samples.trusted(), warmup=0).median_s, samples.calm


def _best(call: Callable[[int], Any], timer: Timer, limit_s: float) -> float:
    return judge(take(call, timer, limit_s=limit_s).trusted(), warmup=0).best_s


def _reads(arrays: list[Tensor], timer: Timer, limit_s: float) -> tuple[dict[str, float], bool]:
    size = arrays[0].numel() * arrays[0].element_size()
    rows = [a.view(-1, 4096) for a in arrays]
    vector = torch.ones(4096, dtype=arrays[0].dtype, device=arrays[0].device)
    n = len(arrays)
    ways: dict[str, tuple[Callable[[int], Any], int]] = {
        "dot": (lambda i: torch.dot(arrays[i % n], arrays[i % n - 1]), 2 * size),
        "matrix-vector": (lambda i: torch.mv(rows[i % n], vector), size),
        "sum": (lambda i: arrays[i % n].sum(), size),
    }
    found, calm = {}, False
    for name, (call, moved) in ways.items():
        seconds, undisturbed = _median(call, timer, limit_s)
        found[name], calm = moved / seconds, calm or undisturbed
    return found, calm


def _memory(
    device: str, cache_bytes: int, timer: Timer, limit_s: float
) -> tuple[dict[str, float], float, int, bool]:
    """Rates of reading and of copying, the bytes of the two arrays, and whether it was calm."""
    count = max(_LEAST, int(1.25 * cache_bytes)) // 4 // 4096 * 4096
    arrays = [torch.ones(count, device=device) for _ in range(2)]
    reads, calm = _reads(arrays, timer, limit_s)
    copied, _ = _median(lambda i: arrays[i % 2].copy_(arrays[i % 2 - 1]), timer, limit_s)
    return reads, 2 * 4 * count / copied, 2 * 4 * count, calm


def measure(device: str = "cpu", cache_bytes: int = 0, limit_s: float = 0.4) -> Ceilings:
    """Ceilings of ``device``, in some ten times ``limit_s``; takes 2.5 times the cache's bytes.

    The median of undisturbed samples, except for products, where the fastest is taken: they are
    the limit that nothing can pass.
    """
    timer = timer_for(device, cache_bytes)
    reads, copied, size, calm = _memory(device, cache_bytes, timer, limit_s)
    side = _SQUARE.get(device.partition(":")[0], 2048)
    rates = {}
    for name, kind in (
        ("fp32", torch.float32),
        ("bf16", torch.bfloat16),
        ("fp16", torch.float16),
    ):
        if name == "fp16" and device == "cpu":
            continue
        a, b = (torch.ones(side, side, dtype=kind, device=device) for _ in range(2))
        rates[name] = 2.0 * side**3 / _best(_product(a, b), timer, limit_s)
    tiny = torch.ones(8, device=device)
    return Ceilings(
        read_bytes_per_s=max(reads.values()),
        copy_bytes_per_s=copied,
        flops_per_s=rates,
        overhead_s=_median(lambda i: tiny + 1, timer, limit_s / 4)[0],
        reads=reads,
        working_set_bytes=size,
        calm=calm,
    )


def _product(a: Tensor, b: Tensor) -> Callable[[int], Tensor]:
    return lambda i: torch.matmul(a, b)
