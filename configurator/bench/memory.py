"""Memory: how much may be taken, how much the allocator gave, and when it refused."""

from __future__ import annotations

import gc

import torch

from configurator.host import available_bytes

__all__ = ["free_bytes", "is_out_of_memory", "release", "requested_bytes"]

_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "failed to allocate")


def free_bytes(device: str) -> int:
    """Bytes that may be taken now; 0 where the system does not say."""
    if device.startswith("cuda"):
        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + held)
    return available_bytes()


def requested_bytes(device: str) -> int | None:
    """Bytes that live tensors asked of CUDA's allocator (it rounds up itself); None elsewhere."""
    if not device.startswith("cuda"):
        return None
    return int(torch.cuda.memory_stats(device)["requested_bytes.all.current"])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(w in str(error).lower() for w in _WORDS)


def release(device: str) -> None:
    """Give back what is no longer used, so that the next size has all there is."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
