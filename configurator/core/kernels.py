"""Which attention kernel runs, and what it may do: rules from the libraries' dispatch, no numbers.

Rates and times are coefficients and live with the catalog; this table says who folds the query
group into one work item, who may split the context, and where a library leaves its fast path.
"Timed" means: seen as a jump in timed kernels (published by ai-dynamo/aiconfigurator), not read
in a library's source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from configurator.core.case import Device
from configurator.core.errors import unknown
from configurator.core.kinds import Attention

__all__ = ["KERNELS", "Kernel", "choose", "kernel"]

_NEVER = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A family of attention kernels: what it may do, and when it hands over to another.

    Args:
        name: what ``kernel=`` accepts.
        title: the library and where it runs.
        family: names whose coefficients apply, general first.
        min_group: smallest query group (query heads per KV head) it takes.
        max_group: largest query group it takes.
        windows: takes a sliding window.
        otherwise: the kernel for rows it does not take.
        folds: one work item serves the query group of a KV head; else each query head is one.
        splits: the context may be split over the device's units.
        row_tile: rows (queries x group) of one work item.
        key_tiles: keys of one tile at head widths up to 64, up to 128 and above.
        smem_kib: shared memory of one work item, which limits how many a unit holds.
        copies: an extra copy kernel where batch > 1 and KV heads > 1.
        capped: the rate of one work item was measured, so it may bound the time.
        scalar: multiplies on the scalar units, so elements bound it, and not bytes.
        converts: a narrow cache is converted to 16 bit at each step.
        odd_d_head: a head width that costs an extra step.
        large_group: group above which heads of 128 and wider cost an extra step, and a cache
            that fits the last-level cache is not reused from it.
        wide_narrow: head width from which a cache below 16 bit takes small tiles.
        spreads_window: a window's work is split by the whole context, most of it in vain.
        latent: a kernel for a latent cache (MLA).
        prefill_rows: query rows of one prefill tile; 0: chosen by length (FlashInfer).
        source: where the rules are written.
    """

    name: str
    title: str
    family: tuple[str, ...] = ()
    min_group: int = 1
    max_group: int = _NEVER
    windows: bool = True
    otherwise: str = ""
    folds: bool = True
    splits: bool = True
    row_tile: int = 64
    key_tiles: tuple[int, int, int] = (128, 128, 128)
    smem_kib: float = 228.0
    copies: bool = False
    capped: bool = True
    scalar: bool = False
    converts: bool = False
    odd_d_head: int = 0
    large_group: int = _NEVER
    wide_narrow: int = _NEVER
    spreads_window: bool = False
    latent: bool = False
    prefill_rows: int = 64
    source: str = ""

    def takes(self, group: Any, window: Any) -> Any:
        """Which rows this kernel serves itself."""
        fits = (group >= self.min_group) & (group <= self.max_group)
        return fits if self.windows else fits & (window == 0)


_FA2 = "Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp, src/static_switch.h (0251105a)"
_FA3 = "Dao-AILab/flash-attention hopper/flash_api.cpp (0251105a)"
_XQA = "NVIDIA/TensorRT-LLM docs/source/features/attention.md (30d2c50c)"
_FI = "flashinfer-ai/flashinfer flashinfer/decode.py (fb28d724)"
_FMLA = "deepseek-ai/FlashMLA docs/20250422-new-kernel-deep-dive.md (9241ae3)"
_TIMED = "timed"

KERNELS: dict[str, Kernel] = {
    k.name: k
    for k in (
        Kernel(  # one query token: the group is folded into rows, unless there is a window
            name="fa2",
            title="FlashAttention-2 (vLLM on Ampere, Ada, RTX)",
            family=("fa2",),
            min_group=2,
            windows=False,
            otherwise="fa2_single",
            key_tiles=(256, 128, 64),
            smem_kib=82,
            copies=True,
            source=f"{_FA2}; copy: {_TIMED}",
        ),
        Kernel(
            name="fa2_single",
            title="FlashAttention-2 with a group of one or a window: neither folded nor split",
            family=("fa2", "fa2_single"),
            folds=False,
            splits=False,
            key_tiles=(256, 128, 64),
            smem_kib=82,
            source=f"{_FA2}; no split: {_TIMED}",
        ),
        Kernel(
            name="fa3",
            title="FlashAttention-3 (vLLM on Hopper)",
            family=("fa3",),
            wide_narrow=192,
            source=f"{_FA3}; small tiles: {_TIMED}",
        ),
        Kernel(
            name="fa3_sglang",
            title="FlashAttention-3 (SGLang)",
            family=("fa3", "fa3_sglang"),
            odd_d_head=192,
            source=f"{_FA3}; head width 192: {_TIMED}",
        ),
        Kernel(
            name="fa4",
            title="FlashAttention-4 (heads of 512; data-centre Blackwell)",
            family=("unknown",),
            capped=False,
            prefill_rows=128,
            source="Dao-AILab/flash-attention flash_attn/cute/interface.py (0251105a)",
        ),
        Kernel(
            name="flashinfer",
            title="FlashInfer (vLLM with an fp8 cache on Ada and RTX; SGLang)",
            family=("flashinfer",),
            large_group=16,
            prefill_rows=0,
            source=f"{_FI}; large groups: {_TIMED}",
        ),
        Kernel(
            name="triton",
            title="Triton attention (vLLM, SGLang)",
            family=("triton",),
            row_tile=16,
            source=_TIMED,
        ),
        Kernel(
            name="trtllm",
            title="TensorRT-LLM: XQA, or masked MHA outside its query groups",
            family=("xqa",),
            min_group=2,
            max_group=32,
            otherwise="mmha",
            row_tile=16,
            spreads_window=True,
            source=f"{_XQA}; groups above 32, windows: {_TIMED}",
        ),
        Kernel(
            name="trtllm_hopper_fp8",
            title="TensorRT-LLM XQA with an fp8 cache on Hopper, a kernel of its own",
            family=("xqa_hopper",),
            min_group=2,
            max_group=32,
            otherwise="mmha",
            row_tile=16,
            source=f"{_XQA}; {_TIMED}",
        ),
        Kernel(
            name="mmha",
            title="TensorRT-LLM masked MHA: groups of 1 or above 32, each query head on its own",
            family=("mmha",),
            folds=False,
            scalar=True,
            source=f"{_XQA}; {_TIMED}",
        ),
        Kernel(
            name="trtllm_gen",
            title="TensorRT-LLM generated kernels (data-centre Blackwell; vLLM, SGLang)",
            family=("trtllm_gen",),
            capped=False,
            prefill_rows=128,
            source="vllm-project/vllm docs/design/attention_backends.md (00139433)",
        ),
        Kernel(name="intel", title="vLLM on Intel Arc", family=("intel",), source=_TIMED),
        Kernel(
            name="unknown", title="a kernel that nobody timed", family=("unknown",), capped=False
        ),
        Kernel(
            name="mla_hopper",
            title="FlashMLA and TensorRT-LLM on a latent cache (Hopper): split, padded to 64 heads",
            family=("mla_hopper",),
            latent=True,
            source=_FMLA,
        ),
        Kernel(
            name="mla_sglang",
            title="SGLang on a latent cache (Hopper): an fp8 cache is converted at each step",
            family=("mla_sglang",),
            latent=True,
            converts=True,
            source=_TIMED,
        ),
        Kernel(
            name="mla_generic",
            title="TensorRT-LLM on a latent cache before Hopper: not split, fp8 not used",
            family=("mla_generic",),
            latent=True,
            splits=False,
            source=_TIMED,
        ),
        Kernel(
            name="mla_unknown",
            title="a kernel for a latent cache that nobody timed",
            latent=True,
            capped=False,
            prefill_rows=128,
        ),
    )
}

_BLACKWELL = ("sm_100", "sm_103")
# vLLM's order of preference (its docs/design/attention_backends.md): FlashAttention-2 up to Ada
# and on RTX Blackwell, 3 on Hopper, TensorRT-LLM's kernels through FlashInfer on B200 and GB200.
_USUAL = dict.fromkeys(("sm_80", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"), "fa2") | {
    "sm_90": "fa3",
    **dict.fromkeys(_BLACKWELL, "trtllm_gen"),
}
_LATENT = dict.fromkeys(("sm_80", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"), "mla_generic") | {
    "sm_90": "mla_hopper"
}


def kernel(name: str) -> Kernel:
    """The family called ``name``; raises ``UsageError`` with the nearest names."""
    if name not in KERNELS:
        raise unknown("kernel", str(name), KERNELS, f"known: {', '.join(KERNELS)}")
    return KERNELS[name]


def latent_kernel(architecture: str) -> Kernel:
    """The usual family for a latent cache on an architecture."""
    return KERNELS[_LATENT.get(architecture, "mla_unknown")]


def choose(attention: Attention, device: Device, kv_dtype: str = "bf16") -> Kernel:
    """The family that the usual server takes on this device: vLLM's order of preference.

    FlashAttention-2 has no fp8 cache, so a narrow one goes to FlashInfer there.
    """
    if hasattr(attention, "kv_lora_rank") and not getattr(attention, "rebuilt", False):
        return latent_kernel(device.architecture)
    if device.architecture in ("xe2", "xe-hpg"):
        return KERNELS["intel"]
    usual = _USUAL.get(device.architecture, "unknown")
    narrow = kv_dtype not in ("bf16", "fp16", "fp32")
    return KERNELS["flashinfer" if narrow and usual == "fa2" else usual]
