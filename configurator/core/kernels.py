"""Which attention kernel runs, and what it may do: rules from the libraries' dispatch, no numbers.

Rates and times are coefficients and live with the catalog; this table says who folds the query
group into one work item, who may split the context, and where a library leaves its fast path.
"""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.case import Device
from configurator.core.errors import unknown
from configurator.core.kinds import Attention

__all__ = ["KERNELS", "Kernel", "choose", "from_engine", "kernel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A family of attention kernels.

    Args:
        name: what ``kernel=`` accepts.
        title: the library and where it runs.
        folds_single: a head that shares its keys with no other (MHA) may be split over the context.
        folds_window: the group is folded and the context split under a sliding window too.
        max_group: largest query group that is folded; above it one work item per query head.
        row_tile: rows of one work item: queries x group beyond it make another item.
        copies: an extra copy kernel where batch > 1 and KV heads > 1.
        capped: the rate of one work item was measured, so it may bound the time.
        latent: a kernel for a latent cache (MLA).
        splits: the context may be split over the device's units at all.
        source: where the rule is written.
    """

    name: str
    title: str
    folds_single: bool = True
    folds_window: bool = True
    max_group: int = 1 << 30
    row_tile: int = 64
    copies: bool = False
    capped: bool = True
    latent: bool = False
    splits: bool = True
    source: str = ""


_FA = "Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp (0251105a)"
_FA3 = "Dao-AILab/flash-attention hopper/flash_api.cpp (0251105a)"
_XQA = "NVIDIA/TensorRT-LLM docs/source/features/attention.md (30d2c50c)"
_FI = "flashinfer-ai/flashinfer flashinfer/decode.py (fb28d724)"
_FMLA = "deepseek-ai/FlashMLA docs/20250422-new-kernel-deep-dive.md (9241ae3)"
_TIMED = "timed kernels of ai-dynamo/aiconfigurator"

KERNELS: dict[str, Kernel] = {
    k.name: k
    for k in (
        Kernel(
            name="fa2",
            title="FlashAttention-2 (vLLM on Ampere, Ada, RTX)",
            folds_single=False,
            folds_window=False,
            copies=True,
            source=_FA,
        ),
        Kernel(name="fa3", title="FlashAttention-3 (vLLM on Hopper)", source=_FA3),
        Kernel(name="fa3_sglang", title="FlashAttention-3 as SGLang calls it", source=_FA3),
        Kernel(name="fa4", title="FlashAttention-4", capped=False, source="flash_attn/cute"),
        Kernel(name="flashinfer", title="FlashInfer (vLLM with an fp8 cache)", source=_FI),
        Kernel(name="triton", title="Triton attention (vLLM, SGLang)", row_tile=16, source=_TIMED),
        Kernel(
            name="trtllm",
            title="TensorRT-LLM: XQA, or masked MHA outside its groups",
            folds_single=False,
            max_group=32,
            row_tile=16,
            source=_XQA,
        ),
        Kernel(
            name="trtllm_gen",
            title="TensorRT-LLM generated kernels (data-centre Blackwell)",
            capped=False,
            source=_TIMED,
        ),
        Kernel(name="intel", title="vLLM on Intel Arc", source=_TIMED),
        Kernel(name="unknown", title="a kernel that nobody timed", capped=False),
        Kernel(
            name="mla_hopper",
            title="FlashMLA and FlashAttention-3 on a latent cache (Hopper)",
            latent=True,
            source=_FMLA,
        ),
        Kernel(
            name="mla_sglang",
            title="SGLang on a latent cache: an fp8 cache is converted at each step",
            latent=True,
            source=_TIMED,
        ),
        Kernel(
            name="mla_generic",
            title="TensorRT-LLM on a latent cache before Hopper: the context is not split",
            latent=True,
            splits=False,
            source=_TIMED,
        ),
        Kernel(name="mla_unknown", title="a latent kernel nobody timed", latent=True, capped=False),
    )
}

_BY_ARCHITECTURE = {
    "sm_80": "fa2", "sm_86": "fa2", "sm_87": "fa2", "sm_89": "fa2", "sm_120": "fa2",
    "sm_121": "fa2", "sm_90": "fa3", "sm_100": "trtllm_gen", "sm_103": "trtllm_gen",
}  # fmt: skip
_FP8 = {"sm_90": "fa3", "sm_100": "trtllm_gen", "sm_103": "trtllm_gen"}
_LATENT = {"sm_80": "mla_generic", "sm_86": "mla_generic", "sm_87": "mla_generic",
           "sm_89": "mla_generic", "sm_120": "mla_generic", "sm_90": "mla_hopper"}  # fmt: skip


def kernel(name: str) -> Kernel:
    """The family called ``name``; raises ``UsageError`` with the nearest names."""
    if name not in KERNELS:
        raise unknown("kernel", str(name), KERNELS, f"known: {', '.join(KERNELS)}")
    return KERNELS[name]


def choose(attention: Attention, device: Device, kv_dtype: str = "bf16") -> Kernel:
    """The family that the usual server takes on this device: vLLM's order of preference."""
    latent = hasattr(attention, "kv_lora_rank") and not getattr(attention, "rebuilt", False)
    nvidia = device.vendor.casefold() == "nvidia" or device.architecture.startswith("sm_")
    if latent:
        return KERNELS[_LATENT.get(device.architecture, "mla_unknown")]
    if device.vendor.casefold() == "intel" and "cpu" not in device.kind:
        return KERNELS["intel"]
    if not nvidia:
        return KERNELS["unknown"]
    narrow = kv_dtype not in ("bf16", "fp16", "fp32")
    if narrow and device.architecture in _BY_ARCHITECTURE:
        return KERNELS[_FP8.get(device.architecture, "flashinfer")]
    return KERNELS[_BY_ARCHITECTURE.get(device.architecture, "unknown")]


def from_engine(
    framework: str, name: str, op: str, device: Device, kv_dtype: str = "bf16"
) -> Kernel:
    """The family behind an engine's own kernel name, as files of timed kernels write it.

    A name that is not known becomes ``unknown`` (class priors), never a guess by resemblance.
    """
    text, engine = name.casefold(), framework.casefold()
    hopper = device.architecture == "sm_90"
    if device.vendor.casefold() == "intel":
        return KERNELS["intel"]
    if "mla" in op:
        if engine == "sglang" and hopper:
            return KERNELS["mla_sglang"]
        return KERNELS[_LATENT.get(device.architecture, "mla_unknown")]
    if engine == "trtllm":
        return KERNELS["trtllm_gen" if device.architecture in ("sm_100", "sm_103") else "trtllm"]
    if "triton" in text:
        return KERNELS["triton"]
    if "fa4" in text:
        return KERNELS["fa4"]
    if "fa3" in text:
        return KERNELS["fa3_sglang" if engine == "sglang" else "fa3"]
    if "flashinfer" in text:
        blackwell = device.architecture in ("sm_100", "sm_103")
        return KERNELS["trtllm_gen" if blackwell else "flashinfer"]
    if "fa2" in text:
        return KERNELS["fa2"]
    if "flash_attn" in text:
        return KERNELS["fa3" if hopper else "fa2"]
    return KERNELS["unknown"]
