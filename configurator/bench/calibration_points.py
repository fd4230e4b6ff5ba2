"""Which points a calibration times: some to fit, others to judge the fit by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from configurator.bench.points import Point, attention_to
from configurator.core.shapes import geometry

__all__ = ["check_points", "fit_points"]

_FAST = (
    "folded", "sdpa", "k_transposed", "v_transposed", "v_pages", "fused_split", "absorbed",
    "absorbed_fused", "absorbed_split", "padded",
)  # fmt: skip
_GPU = ("split", "repeated", "sdpa_cudnn", "sdpa_flash")  # worth their time on a GPU only


def _geometries(names: str) -> list[dict[str, Any]]:
    shapes: dict[str, dict[str, Any]] = {
        "mha": {"d_model": 4096, "n_heads": 32},
        "gqa8": {"d_model": 4096, "n_heads": 32, "n_kv_heads": 8},
        "gqa4": {"d_model": 3072, "n_heads": 24, "n_kv_heads": 4},
        "mqa": {"d_model": 4096, "n_heads": 32, "n_kv_heads": 1},
        "small": {"d_model": 1024, "n_heads": 16},
        "smallgqa": {"d_model": 1024, "n_heads": 16, "n_kv_heads": 4},
        "tiny": {"d_model": 512, "n_heads": 8, "n_kv_heads": 2},
        "mla": {"d_model": 4096, "n_heads": 32, "kv_lora_rank": 512},
        "mla8": {"d_model": 1024, "n_heads": 8, "kv_lora_rank": 512},
        "mla48": {"d_model": 6144, "n_heads": 48, "kv_lora_rank": 512},
        "mla16": {"d_model": 2048, "n_heads": 16, "kv_lora_rank": 512},
        "mla256": {
            "d_model": 3072, "n_heads": 24, "kv_lora_rank": 256, "qk_rope_head_dim": 32,
        },
    }  # fmt: skip
    return [attention_to(geometry(**shapes[name])) for name in names.split()]


def _cross(
    names: str, sizes: Sequence[tuple[int, int]], dtype: str, phase: str, device: str
) -> list[Point]:
    on_gpu = device.startswith("cuda")
    factor = 4 if on_gpu else 1
    return [
        Point(
            attention=shape, phase=phase, context=factor * context, batch=batch, kv_dtype=dtype,
            device=device, formulations=_FAST + _GPU * on_gpu, limit_s=0.1,
        )
        for shape in _geometries(names)
        for context, batch in sizes
    ]  # fmt: skip


def fit_points(device: str = "cpu") -> list[Point]:
    """What the coefficients are fitted to: ends and middle of sizes, in 16 and 32 bit."""
    sizes = [(1024, 1), (4096, 1), (16384, 1), (2048, 4)]
    return [
        *_cross("mha gqa8 mqa smallgqa", sizes, "bf16", "decode", device),
        *_cross("mla mla8 mla256", sizes[1:], "bf16", "decode", device),
        *_cross("gqa8 small", [(1024, 1), (8192, 1)], "fp32", "decode", device),
        *_cross("mla8 mla", [(1024, 1), (4096, 1)], "fp32", "decode", device),
        *_cross("mha smallgqa tiny", [(256, 1), (512, 1), (1024, 1)], "bf16", "prefill", device),
        *_cross("mla16", [(256, 1), (512, 1), (1024, 1)], "bf16", "prefill", device),
        *_cross("smallgqa", [(256, 1), (1024, 1)], "fp32", "prefill", device),
    ]


def check_points(device: str = "cpu") -> list[Point]:
    """What the fit is judged by: other geometries and other sizes, in the default cache type."""
    sizes = [(1536, 1), (3072, 2), (12288, 1)]
    return [
        *_cross("mha gqa8 gqa4 small tiny mqa", sizes, "bf16", "decode", device),
        *_cross("mla48 mla16", sizes[:2], "bf16", "decode", device),
        *_cross("gqa4 small tiny", [(384, 1), (768, 1)], "bf16", "prefill", device),
        *_cross("mla", [(384, 1), (768, 1)], "bf16", "prefill", device),
    ]
