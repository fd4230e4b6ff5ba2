"""Timed attention kernels from a CSV file: rows by group, predictions for them, plain baselines.

Columns as in the data of ai-dynamo/aiconfigurator (README.md says where): device, framework,
framework_version, op, kernel, batch, query_len, context, n_heads, n_kv_heads, d_head,
kv_lora_rank, rope_dim, window, kv_dtype, latency_us. Missing ones count as 0.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from configurator.catalog.targets import aliases, device, names
from configurator.core.case import Device
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.kernel_names import from_engine
from configurator.core.kinds import Attention
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.latency import predict_latency

OPS = ("decode", "prefill", "decode_mla", "prefill_mla")
_COUNTS = ("batch", "query_len", "context", "n_heads", "n_kv_heads", "d_head", "kv_lora_rank",
           "rope_dim", "window")  # fmt: skip
_KV = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16", "half": "fp16"}
# Names in the files that a rule does not lead to one device of the catalog.
_SAID = {"a100_sxm": "a100-sxm4-80gb", "a100_pcie": "a100-pcie-80gb", "b60": "arc-pro-b60"}


@dataclass(slots=True)
class Group:
    """Rows of one device, framework, operation, kernel and cache type; columns are arrays."""

    device_name: str
    device: Device
    framework: str
    version: str
    op: str
    kernel_name: str
    family: str
    kv: str
    columns: dict[str, Any]
    seconds: Any

    @property
    def phase(self) -> str:
        """``decode`` or ``prefill``."""
        return self.op.removesuffix("_mla")

    @property
    def attention(self) -> Attention:
        """The geometries as columns."""
        c = self.columns
        if self.op.endswith("_mla"):
            return Latent(
                d_model=1, n_heads=c["n_heads"], kv_lora_rank=c["kv_lora_rank"],
                qk_rope_head_dim=c["rope_dim"], qk_nope_head_dim=128, v_head_dim=128,
            )  # fmt: skip
        return GroupedQuery(
            d_model=1, n_heads=c["n_heads"], n_kv_heads=c["n_kv_heads"], d_head=c["d_head"]
        )

    def predict(self, coefficients: Mapping[str, float] | None = None, warm: bool = True) -> Any:
        """Seconds by the model; the files repeat one call, so caches are warm."""
        c = self.columns
        target = self.device
        if coefficients is not None:
            target = replace(target, coefficients=coefficients)
        return predict_latency(
            self.attention,
            target,
            phase=self.phase,
            batch=c["batch"],
            context=c["context"],
            query_len=c["query_len"],
            window=c["window"],
            kv_dtype=self.kv,
            kernel=self.family,
            warm=warm,
        )

    def cache_bytes(self) -> Any:
        """Bytes of keys and values, or of latents, that the kernel attends to."""
        c = self.columns
        keys = np.where(c["window"] > 0, np.minimum(c["window"], c["context"]), c["context"])
        return c["batch"] * keys * np.float64(1) * self.attention.cache_bytes(cache_type(self.kv))

    def roofline(self) -> Any:
        """Bytes over bandwidth or FLOPs over the 16-bit peak, the larger."""
        c = self.columns
        moved = self.cache_bytes() / self.device.bandwidth_bytes_per_s
        peak = self.device.rate("fp16")[0] or np.inf
        query = c["query_len"].astype(np.float64)
        keys = np.where(c["window"] > 0, np.minimum(c["window"], c["context"]), c["context"])
        if self.phase == "decode":
            pairs = query * keys
        else:
            near = np.minimum(keys, query)
            pairs = near * (near + 1) / 2 + (query - near) * near
        flops = c["batch"] * pairs * self.attention.score_flops(self.phase)
        return np.maximum(moved, flops / peak)

    def fixed(self) -> Any:
        """The usual rule of thumb: 80 % of the roofline plus 3 us."""
        return self.roofline() / 0.8 + 3e-6

    def suspect(self) -> Any:
        """Rows that read faster than the card can: XQA of TensorRT-LLM 1.0 on A100.

        Beyond the last-level cache they run at up to 1.7 times the bandwidth, so the benchmark
        read less than it says; they are judged like all rows, but nothing is fitted to them.
        """
        none = np.zeros(len(self.seconds), bool)
        if self.family != "trtllm" or not self.version.startswith("1.0"):
            return none
        group = self.columns["n_heads"] // self.columns["n_kv_heads"]
        folded = (group >= 2) & (group <= 32)
        return folded & (self.cache_bytes() > self.device.cache_bytes)


@cache
def find_device(name: str) -> Device | None:
    """The catalog's device for a name in a file, such as ``h100_sxm``; None where it has none.

    A name that fits several takes the one with most memory.
    """
    plain = name.strip().casefold()
    if plain in _SAID:
        return device(_SAID[plain])
    wanted = plain.replace("_", "-").replace(" ", "-")
    try:
        return device(wanted)
    except UsageError:
        pass
    tokens = set(wanted.split("-"))

    def holds(text: str) -> bool:
        own = set(re.split(r"[-.]", text))
        return all(t in own or any(o.startswith(t) for o in own if t.isalpha()) for t in tokens)

    found = {n for n in names() if holds(n)} | {aliases()[a] for a in aliases() if holds(a)}
    if not found:
        bare = re.sub(r"[^a-z0-9]", "", plain)
        found = {n for n in names() if re.sub(r"[^a-z0-9]", "", n) == bare}
    return max((device(n) for n in found), key=lambda d: d.memory_bytes, default=None)


def load(path: str | Path) -> list[Group]:
    """All groups of a file, in order of appearance; what cannot be used is named on stderr."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kept: dict[tuple[str, ...], list[dict[str, str]]] = {}
    skipped: dict[str, int] = {}
    for row in rows:
        kv = _KV.get(row.get("kv_dtype", "").casefold(), row.get("kv_dtype", ""))
        reason = _unusable(row, kv)
        if reason:
            skipped[reason] = skipped.get(reason, 0) + 1
            continue
        key = (row["device"], row.get("framework", ""), row.get("framework_version", ""),
               row["op"], row.get("kernel", ""), kv)  # fmt: skip
        kept.setdefault(key, []).append(row)
    for reason, count in skipped.items():
        print(f"warning: {count} rows skipped: {reason}", file=sys.stderr)
    return [_group(key, found) for key, found in kept.items()]


def _unusable(row: dict[str, str], kv: str) -> str:
    """Why a row cannot be used; empty where it can."""
    if row.get("op") not in OPS:
        return f"op {row.get('op')!r} is none of {', '.join(OPS)}"
    if find_device(row["device"]) is None:
        return f"device {row['device']!r} is not in the catalog"
    try:
        cache_type(kv)
        usable = float(row["latency_us"]) > 0 and int(float(row["context"])) > 0
    except (UsageError, ValueError, KeyError):
        return f"kv_dtype {kv!r}, latency_us or context cannot be read"
    return "" if usable else "latency_us or context is not above zero"


def _group(key: tuple[str, ...], rows: list[dict[str, str]]) -> Group:
    name, framework, version, op, kernel, kv = key
    found = find_device(name)
    assert found is not None
    columns = {
        c: np.array([int(float(r.get(c) or 0)) for r in rows], dtype=np.int64) for c in _COUNTS
    }
    for c in ("batch", "query_len", "n_heads", "n_kv_heads", "d_head"):
        columns[c] = np.maximum(columns[c], 1)
    columns["window"] = np.maximum(columns["window"], 0)
    if op.endswith("_mla"):
        columns["kv_lora_rank"] = np.where(
            columns["kv_lora_rank"] > 0, columns["kv_lora_rank"], 512
        )
        columns["rope_dim"] = np.where(columns["rope_dim"] > 0, columns["rope_dim"], 64)
    return Group(
        device_name=name,
        device=found,
        framework=framework,
        version=version,
        op=op,
        kernel_name=kernel,
        family=from_engine(framework, kernel, op, found, kv).name,
        kv=kv,
        columns=columns,
        seconds=np.array([float(r["latency_us"]) for r in rows]) * 1e-6,
    )
