"""Cases for rules' examples and tests: one sensible decoder, changed where it matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from configurator.core.case import Case, Device, FeedForward, Workload
from configurator.core.dtypes import cache_type
from configurator.core.shapes import decoder, encoder, encoder_decoder, geometry

__all__ = ["example", "example_device"]

_GEOMETRY = ("n_heads", "n_kv_heads", "d_head", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
             "qk_rope_head_dim", "v_head_dim", "bias", "qk_norm")  # fmt: skip
_WORK = ("context", "batch", "weight_dtype", "tensor_parallel", "page_size", "source_len",
         "priority", "benchmarking", "allow_decoupled")  # fmt: skip


def example_device(**changes: Any) -> Device:
    """A made-up 80 GiB GPU with round figures, changed where the example needs it."""
    base = Device(
        name="example-gpu",
        vendor="NVIDIA",
        kind="datacenter-gpu",
        memory_bytes=80 * 2**30,
        bandwidth_bytes_per_s=2e12,
        flops_per_s={"fp32": 20e12, "fp16": 300e12, "bf16": 300e12},
        interconnect_bytes_per_s=300e9,
        n_units=108,
        cache_bytes=40 * 2**20,
        clock_hz=1.41e9,
        architecture="sm_80",
    )
    return replace(base, **changes)


def example(*, device: Device | None = None, kv_dtype: str = "bf16", **changes: Any) -> Case:
    """A 4,096-wide decoder with 32 query and 8 KV heads of 128, changed as asked.

    Takes geometry (``n_heads=24``), workload (``context=131072``), ``d_model``, ``n_layers``,
    ``d_ff``, ``vocab_size``, ``tied``, ``window``, ``full_every``, ``n_experts``,
    ``experts_per_token``, ``arch`` and a ``device``. Raises ``TypeError`` for any other name.
    """
    shape = {"d_model": 4096, "n_heads": 32, "n_kv_heads": 8, "d_head": 128} | {
        k: changes.pop(k) for k in ("d_model", *_GEOMETRY) if k in changes
    }
    work = {k: changes.pop(k) for k in _WORK if k in changes}
    n_layers = changes.pop("n_layers", 32)
    feed_forward = FeedForward(
        d_model=shape["d_model"],
        d_ff=changes.pop("d_ff", 14336),
        n_experts=changes.pop("n_experts", 0),
        experts_per_token=changes.pop("experts_per_token", 0),
    )
    vocab, arch = changes.pop("vocab_size", 128256), changes.pop("arch", "decoder")
    attention = geometry(**shape)
    common: dict[str, Any] = {
        "n_layers": n_layers, "feed_forward": feed_forward, "vocab_size": vocab
    }  # fmt: skip
    if arch == "encoder":
        model = encoder(attention, **common)
    elif arch == "encoder-decoder":
        model = encoder_decoder(attention, source_len=work.get("source_len", 4096), **common)
    else:
        optional = {k: changes.pop(k) for k in ("tied", "window", "full_every") if k in changes}
        model = decoder(attention, **common, **optional)
    if changes:
        raise TypeError(f"unknown example fields: {', '.join(changes)}")
    workload = Workload(kv=cache_type(kv_dtype), **work)
    return Case(shape=model, workload=workload, device=device)
