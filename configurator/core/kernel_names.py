"""The kernel family behind the names that engines and files of timed kernels use."""

from __future__ import annotations

from configurator.core.case import Device
from configurator.core.kernels import KERNELS, Kernel, latent_kernel

__all__ = ["from_engine"]

_BLACKWELL = ("sm_100", "sm_103")


def from_engine(
    framework: str, name: str, op: str, device: Device, kv_dtype: str = "bf16"
) -> Kernel:
    """The family for an engine's own kernel name, such as ``vllm_flash_attn_fa3``.

    Args:
        framework: ``vllm``, ``sglang``, ``trtllm``.
        name: the kernel as the file calls it; ``torch_flow`` and ``default`` are TensorRT-LLM's.
        op: ``decode``, ``prefill``, ``decode_mla`` or ``prefill_mla``.
        device: where it ran.
        kv_dtype: type of the cache.

    Returns:
        A family of the right kind of cache; ``unknown`` (or ``mla_unknown``) where the name says
        nothing, never a guess by resemblance.
    """
    text, engine = name.casefold(), framework.casefold()
    hopper = device.architecture == "sm_90"
    if "mla" in op:
        return _latent(text, engine, device)
    if device.architecture in ("xe2", "xe-hpg"):
        return KERNELS["intel"]
    blackwell = device.architecture in _BLACKWELL
    if "triton" in text:
        return KERNELS["triton"]
    if "trtllm" in text or (engine == "trtllm" and text in ("torch_flow", "default")):
        if blackwell:
            return KERNELS["trtllm_gen"]
        special = hopper and kv_dtype == "fp8"
        return KERNELS["trtllm_hopper_fp8" if special else "trtllm"]
    if "flashinfer" in text:
        plain = engine == "sglang" or not blackwell
        return KERNELS["flashinfer" if plain else "trtllm_gen"]
    if "fa4" in text or text.endswith("_v4"):
        return KERNELS["fa4"]
    if engine == "sglang" and ("fa3" in text or "flash_attention" in text):
        return KERNELS["fa3_sglang"]
    if "fa3" in text:
        return KERNELS["fa3"]
    if "fa2" in text:
        return KERNELS["fa2"]
    if "flash_attn" in text:
        return KERNELS["unknown" if blackwell else "fa3" if hopper else "fa2"]
    return KERNELS["unknown"]


def _latent(text: str, engine: str, device: Device) -> Kernel:
    if device.architecture == "sm_90" and engine == "sglang":
        return KERNELS["mla_sglang"]
    if "triton" in text:
        return KERNELS["mla_unknown"]
    return latent_kernel(device.architecture)
