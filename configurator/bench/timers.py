"""A timer for each kind of device: synchronised, and cold where the device has a cache to flush."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from configurator.bench.clock import Timer

__all__ = ["synchronise", "timer_for"]


def synchronise(device: str) -> None:
    """Wait until everything that was launched on ``device`` has finished."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    elif device.startswith("mps"):
        torch.mps.synchronize()


def timer_for(device: str, cache_bytes: int = 0) -> Timer:
    """The clock of ``device``: the processor's, or the events of a GPU with its cache flushed.

    Between two samples on a GPU a buffer of twice the last-level cache is overwritten, so that
    nothing of the input is left on chip, whatever the working set.
    """
    if device.startswith("cuda"):
        # The events are the GPU's: what becomes of this process meanwhile does not matter.
        return Timer(measure=_cuda(cache_bytes), disturbances=lambda: 0)

    def measure(call: Callable[[int], Any], i: int) -> float:
        synchronise(device)
        start = time.perf_counter()
        result = call(i)
        synchronise(device)
        seconds = time.perf_counter() - start
        del result  # held until here, so that nothing can be left out as unused
        return seconds

    return Timer(measure=measure)


def _cuda(cache_bytes: int) -> Callable[[Callable[[int], Any], int], float]:
    flush = torch.empty(max(2 * cache_bytes, 1 << 26), dtype=torch.uint8, device="cuda")

    def measure(call: Callable[[int], Any], i: int) -> float:
        flush.zero_()
        start: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        result = call(i)
        end.record()
        end.synchronize()
        del result
        return float(start.elapsed_time(end)) / 1e3

    return measure
