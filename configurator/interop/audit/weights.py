"""The element type that a model's weights are stored in, by what its configuration says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["weight_dtype"]

_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "int4", "awq": "int4", "gptq": "int4"}
_BITS = {8: "int8", 4: "int4"}


def weight_dtype(values: Mapping[str, Any], stated: str) -> str:
    """``quantization_config``'s type, else the stated 2-byte type, else bf16.

    A quantised file keeps some matrices wider; their share is small and not read here. Weights
    stated as fp32 are counted as bf16, the type that servers load them in.
    """
    quantised = values.get("quantization_config")
    if isinstance(quantised, dict):
        method, bits = quantised.get("quant_method"), quantised.get("bits")
        if isinstance(bits, int) and not isinstance(bits, bool) and bits in _BITS:
            return _BITS[bits]
        if isinstance(method, str) and method in _METHODS:
            return _METHODS[method]
        if quantised.get("load_in_4bit") is True:
            return "int4"
    return stated if stated in ("fp16", "bf16", "fp8") else "bf16"
