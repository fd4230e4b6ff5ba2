"""The cache of a whole model, allocated group by group, against the core's prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from configurator.attention.cache import allocate_group, held_bytes
from configurator.bench.memory import free_bytes, is_out_of_memory, release, requested_bytes
from configurator.core.case import Case
from configurator.core.cost import cache_bytes

__all__ = ["WholeCache", "check_cache"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCache:
    """Bytes of a model's cache for the workload; ``measured_bytes`` None where one layer's cache
    does not fit. ``groups`` says what each kind of layer holds.
    """

    predicted_bytes: int
    measured_bytes: int | None
    groups: tuple[dict[str, Any], ...]
    status: str

    @property
    def exact(self) -> bool:
        """Nothing that was measured differs from its prediction."""
        return self.measured_bytes in (None, self.predicted_bytes)


def check_cache(case: Case, device: str = "cpu", free: int | None = None) -> WholeCache:
    """Allocate one layer of every group in turn, and count its bytes once for each layer.

    Equal layers hold equal caches, so one is taken and multiplied: a whole model's cache is
    often larger than the machine. On CUDA the allocator's own count is used.
    """
    work = case.workload
    total, groups = 0, []
    room = free_bytes(device) if free is None else free
    predicted = int(cache_bytes(case))
    for group in case.shape.groups:
        if group.scope.kind == "recurrent":
            need = int(work.batch * group.scope.size)
        elif group.attention is None or not group.scope.caches:
            need = 0
        else:
            tokens = group.cached_tokens(work.context, work.page_size)
            need = int(work.batch * tokens * group.attention.cache_bytes(work.kv))
        if room and need > room:
            why = f"one layer needs {need:,} bytes, {room:,} are free"
            return _not_allocated(predicted, why)
        before = requested_bytes(device)
        try:
            taken = allocate_group(
                group, work.kv, batch=int(work.batch), context=int(work.context),
                page=int(work.page_size), device=device,
            )  # fmt: skip
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return _not_allocated(predicted, f"the allocator refused {need:,} bytes for one layer")
        after = requested_bytes(device)
        layer = held_bytes(taken) if before is None or after is None else after - before
        del taken
        release(device)
        total += int(group.count) * layer
        groups.append(
            {
                "layers": int(group.count),
                "scope": group.scope.kind,
                "size": int(group.scope.size),
                "bytes_per_layer": layer,
            }
        )
    status = "exact" if total == predicted else "bytes differ"
    return WholeCache(
        predicted_bytes=predicted, measured_bytes=total, groups=tuple(groups), status=status
    )


def _not_allocated(predicted: int, why: str) -> WholeCache:
    return WholeCache(
        predicted_bytes=predicted,
        measured_bytes=None,
        groups=(),
        status=f"out of memory: {why}",
    )
