"""A case: a model's shape, the work it is asked to do, and the device that does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from configurator.core.columns import maximum
from configurator.core.dtypes import CacheType, cache_type
from configurator.core.errors import UsageError
from configurator.core.kinds import Attention
from configurator.core.layers import FeedForward, LayerGroup, ModelShape, Scope
from configurator.core.units import Count

__all__ = ["Case", "Device", "FeedForward", "LayerGroup", "ModelShape", "Scope", "Workload"]

_WIDER = {
    "fp4": "fp8", "nvfp4": "fp8", "fp8": "fp16", "int8": "fp16", "fp16": "bf16", "bf16": "fp32",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A deployment target: ``count`` equal devices. Rates and memory are those of one device.

    Args:
        name: the catalog's name, such as ``h100-sxm5-80gb``.
        title: the name people use.
        vendor: NVIDIA, AMD, Intel, Apple, ...
        kind: ``datacenter-gpu``, ``consumer-gpu``, ``laptop``, ``edge``, ``phone``, ``tpu``,
            ``cpu-server`` or ``other``.
        memory_bytes: memory of one device.
        bandwidth_bytes_per_s: memory bandwidth of one device.
        flops_per_s: dense matrix rates by dtype (fp32, fp16, bf16, fp8, int8, fp4).
        interconnect_bytes_per_s: one direction, per device; 0 where unknown.
        n_units: streaming multiprocessors, compute units or cores; 0 where unknown.
        cache_bytes: last-level cache (L2 on GPUs); 0 where unknown.
        clock_hz: boost clock; 0 where unknown.
        architecture: ``sm_90``, ``cdna3``, ``apple-gpu``, ...: what kernels are compiled for.
        usable_share: share of memory that weights and cache may take.
        overhead_bytes: per device, inside that share: activations, graphs, buffers.
        verified: the figures were read at a source.
        sources: where.
        note: what a reader should know.
        coefficients: fitted latency coefficients that the catalog read for this device.
        count: devices in the target.
        nodes: machines they are spread over.
    """

    name: str
    title: str = ""
    vendor: str = ""
    kind: str = "other"
    memory_bytes: int
    bandwidth_bytes_per_s: float
    flops_per_s: Mapping[str, float] = field(default_factory=dict)
    interconnect_bytes_per_s: float = 0.0
    n_units: int = 0
    cache_bytes: int = 0
    clock_hz: float = 0.0
    architecture: str = ""
    usable_share: float = 0.9
    overhead_bytes: int = 0
    verified: bool = True
    sources: tuple[str, ...] = ()
    note: str = ""
    coefficients: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    count: int = 1
    nodes: int = 1
    year: int = 0

    def check_ranks(self, ranks: int) -> None:
        """Raise ``UsageError`` for a tensor parallelism that these devices cannot do."""
        if ranks > self.count:
            raise UsageError(
                f"tensor-parallel {ranks} needs {ranks} devices, the target has {self.count}; name "
                f"{ranks}x{self.name}, or lower tensor-parallel"
            )
        if self.count % ranks:
            raise UsageError(
                f"tensor-parallel {ranks} does not divide the target's {self.count} devices; use a "
                "divisor"
            )

    def rate(self, dtype: str) -> tuple[float, str]:
        """Dense FLOP/s for ``dtype`` and the dtype really used: the next wider one that is known.

        Returns ``(0.0, "")`` where no rate is known: latency is then unknown, not guessed.
        """
        name: str | None = dtype
        while name is not None:
            if self.flops_per_s.get(name):
                return self.flops_per_s[name], name
            name = _WIDER.get(name)
        return 0.0, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the model is asked to do: context and batch in tokens and sequences, types, split.

    ``batch`` is the sequences in flight over the whole target. ``tensor_parallel`` splits heads
    over that many ranks; where it is below the device count, attention is replicated and the
    batch shared among the replicas. ``allow_decoupled`` lets ``n_heads * d_head`` differ from
    ``d_model``; ``benchmarking`` lets MLA be proposed below a billion parameters.
    """

    context: Count = 8192
    batch: Count = 1
    weight_dtype: str = "bf16"
    kv: CacheType = field(default_factory=lambda: cache_type("bf16"))
    tensor_parallel: Count = 1
    page_size: Count = 1
    source_len: Count = 0
    priority: str = "balanced"
    benchmarking: bool = False
    allow_decoupled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question in full, or a column of them: shape, workload, device (None: not named)."""

    shape: ModelShape
    workload: Workload = field(default_factory=Workload)
    device: Device | None = None

    @property
    def attention(self) -> Attention:
        """The attention that the advice is about."""
        return self.shape.attention

    @property
    def replicas(self) -> Count:
        """Copies of the attention that serve side by side: devices over tensor parallelism."""
        count = self.device.count if self.device else 1
        return maximum(count // self.workload.tensor_parallel, 1)
