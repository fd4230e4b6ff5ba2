"""Which kernel torch takes for ``scaled_dot_product_attention``: predicted, and seen.

The function is one name for several kernels, and it falls back to a slow one without a word.
:func:`sdpa_path` says beforehand which one a call takes, :func:`observed_path` names the one
that ran. The rules are those of torch's own selection tests (aten/src/ATen/native/transformers:
``sdp_utils_cpp.cpp``, ``cuda/sdp_utils.cpp``, ``mps/operations/Attention.mm``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from configurator.attention.cache import torch_dtype

__all__ = ["Path", "observed_path", "sdpa_path"]

_GIB = 1 << 30
_CUDA = re.compile(r"cuda(?: sm[_ ]?(\d+)\+?)?")
_FLASH_WIDTH = 256
_MPS_DECODE, _MPS_PREFILL = (64, 96, 128, 256), (32, 64, 72, 80, 96, 128, 256)
_MPS_QUERIES = 8  # the most that its decode kernel takes
_KERNELS = (
    ("_scaled_dot_product_flash_attention", "fused (flash)"),
    ("_scaled_dot_product_efficient_attention", "fused (efficient)"),
    ("_scaled_dot_product_cudnn_attention", "fused (cudnn)"),
    ("_scaled_dot_product_fused_attention", "fused (vendor)"),
    ("_scaled_dot_product_attention_math_for_mps", "fused (mps)"),
    ("_scaled_dot_product_attention_math", "math"),
)


@dataclass(frozen=True, slots=True)
class Path:
    """``kind`` is ``fused``, ``math`` or ``refused``; ``why`` and ``advice`` may be empty."""

    kind: str
    why: str = ""
    advice: str = ""
    quadratic: bool = False

    def __str__(self) -> str:
        if self.kind == "refused":
            return f"refused: {self.why}"
        text = self.kind
        if self.quadratic:
            text += ", quadratic memory"
        if self.advice and self.kind == "math":
            return f"{text}; advise {self.advice}"
        if not self.why:
            return text
        return (
            f"{text}, {self.why}"
            if self.why.startswith("K and V copied")
            else (f"{text} ({self.why})")
        )


def sdpa_path(
    device: str,
    dtype: str,
    n_heads: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int,
    q_len: int,
    kv_len: int,
    *,
    torch_version: str = "",
) -> Path:
    """What ``scaled_dot_product_attention(..., enable_gqa=True)`` does, without a mask.

    Args:
        device: ``cpu``, ``cuda sm80`` (compute capability; ``cuda`` alone means 8.0 or later),
            ``mps`` or ``rocm``.
        dtype: torch's name of the element type, such as ``bfloat16``, or ours (``bf16``).
        n_heads: query heads.
        n_kv_heads: heads of K and V.
        d_k: width of a query or key head.
        d_v: width of a value head.
        q_len: queries of each sequence.
        kv_len: keys of each sequence.
        torch_version: such as ``2.13``; the installed one where not given. It decides on MPS.

    Returns:
        The path, why it is not the fused one, and what to do instead. On the CPU a fused call
        with grouped heads reads K and V once per query head, which the advice says.
    """
    if min(n_heads, n_kv_heads) < 1 or n_heads % n_kv_heads:
        return Path("refused", f"{n_heads} heads are not a multiple of {n_kv_heads}")
    grouped = n_heads != n_kv_heads
    scores = 4 * n_heads * q_len * kv_len
    name = device.strip().lower()
    known = torch_dtype(dtype)
    dtype = dtype if known is None else str(known).removeprefix("torch.")
    if name == "cpu":
        return _cpu(dtype, grouped, d_k == d_v, q_len)
    if name == "mps":
        version = torch_version or torch.__version__
        return _mps(version, grouped, d_k, d_v, q_len, scores > _GIB)
    match = _CUDA.fullmatch(name)
    if match is None and name != "rocm":
        raise ValueError(f"device {device!r} is not cpu, cuda, cuda smNN, rocm or mps")
    arch = int(match[1]) if match and match[1] else 80
    return _cuda(arch, dtype, grouped, d_k, d_v, scores > _GIB, name == "rocm")


def _cpu(dtype: str, grouped: bool, equal: bool, q_len: int) -> Path:
    fold = "folding the group into the query axis" if grouped and q_len == 1 else ""
    if equal and dtype in ("float32", "float64", "bfloat16", "float16"):
        return Path("fused", advice=fold)
    if grouped:
        return Path("math", "K and V copied to every head")
    why = f"{dtype} has no fused kernel" if equal else "K and V widths differ"
    return Path("math", why)


def _mps(version: str, grouped: bool, d_k: int, d_v: int, q_len: int, large: bool) -> Path:
    """Reported, not run here: crash up to 2.6, a silent copy in 2.7 to 2.11, native from 2.12."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    if grouped and numbers < [2, 7]:
        return Path("refused", "grouped heads crash on MPS before torch 2.7")
    if grouped and numbers < [2, 12]:
        return Path("math", "K and V copied to every head")
    if d_k != d_v:
        return Path("math", "K and V widths differ", quadratic=large)
    if d_k in (_MPS_DECODE if q_len <= _MPS_QUERIES else _MPS_PREFILL):
        return Path("fused")
    why = "K and V copied to every head" if grouped else "no fused kernel takes these widths"
    return Path("math", why, quadratic=large)


def _cuda(
    arch: int, dtype: str, grouped: bool, d_k: int, d_v: int, large: bool, rocm: bool
) -> Path:
    short = dtype in ("float16", "bfloat16")
    widest = 512 if rocm else _FLASH_WIDTH
    flash = short and d_k == d_v <= widest and (rocm or arch >= 80)
    if flash:
        return Path("fused")
    step = 8 if short else 4
    runs = dtype in ("float16", "float32") or (dtype == "bfloat16" and arch >= 80)
    efficient = runs and not rocm and d_k % step == 0 and d_v % step == 0
    if efficient and not grouped:
        return Path("fused")
    if not grouped:
        return Path("math", "no fused kernel takes these widths", quadratic=large)
    if dtype == "float32" and arch >= 80 and d_k == d_v <= widest:
        return Path("math", "float32", "bf16, or copy K and V first")
    # Memory-efficient attention takes the call once K and V have as many heads as Q.
    why = "no fused kernel takes grouped heads here"
    return Path("math", why, "copying K and V first" if efficient else "", quadratic=large)


def observed_path(call: Callable[[], Any], device: str = "cpu") -> str:
    """The path that one call really takes, from the operators a profiler saw.

    ``fused (flash)``, ``fused (efficient)``, ``fused (cudnn)``, ``math`` (with ``K and V
    copied`` where they were), ``products`` for plain matrix products; ``compiled:`` before it.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler chatters on stderr
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        call()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
    return classify([event.name for event in seen.events() or ()])


def classify(operators: list[str]) -> str:
    """The path that a list of operator names stands for."""
    names = set(operators)
    compiled = "compiled: " if any("CompiledFxGraph" in name for name in names) else ""
    for marker, path in _KERNELS:
        if any(marker in name for name in names):
            copied = ", K and V copied to every head" if "aten::repeat_interleave" in names else ""
            return f"{compiled}{path}{copied}"
    products = {"aten::bmm", "aten::mm", "aten::mv", "aten::baddbmm"} & names
    if products:
        return f"{compiled}products ({', '.join(sorted(n[6:] for n in products))})"
    return "compiled: own kernel" if compiled else "unknown"
