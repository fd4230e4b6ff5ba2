"""The element type that a model's weights are stored in, by what its configuration says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from configurator.core.errors import show
from configurator.interop.huggingface.reading import Reading

__all__ = ["with_weights"]

_METHODS = {
    "fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "int4", "awq": "int4", "eetq": "int8",
    "modelopt_fp4": "nvfp4",
}  # fmt: skip
_BITS = {8: "int8", 4: "int4"}
_FLOAT_BITS = {8: "fp8", 4: "nvfp4"}
# Words of the names that ModelOpt, Quark, TorchAO and Quanto give their schemes, first match.
_WORDS = {"fp4": "nvfp4", "fp8": "fp8", "float8": "fp8", "w4a": "int4", "int4": "int4",
          "w8a": "int8", "int8": "int8"}  # fmt: skip
_NAMED = ("quant_algo", "weights", "quant_type", "dtype")
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


def with_weights(reading: Reading, values: Mapping[str, Any]) -> tuple[Reading, str]:
    """The reading and the type of its weights, with a warning where the file's is not read.

    ``quantization_config``'s type, else the stated 2-byte type, else bf16. A quantised file keeps
    some matrices wider; their share is small and not read here. Weights stated as fp32 are counted
    as bf16, the type that servers load them in.
    """
    quantised = _section(values)
    scheme = _scheme(quantised) if quantised else ""
    counted = scheme or (reading.dtype if reading.dtype in ("fp16", "bf16", "fp8") else "bf16")
    if not quantised or scheme:
        return reading, counted
    method = show(quantised.get("quant_method"))
    text = f"quantization_config of {method} is not read: weights are counted as {counted}"
    return replace(reading, warnings=(*reading.warnings, text)), counted


def _section(values: Mapping[str, Any]) -> Mapping[str, Any]:
    levels = [values, *(values[k] for k in _NESTED if isinstance(values.get(k), dict))]
    for level in levels:
        for name in ("quantization_config", "compression_config"):
            if isinstance(level.get(name), dict):
                return level[name]  # type: ignore[no-any-return]
    return {}


def _scheme(quantised: Mapping[str, Any]) -> str:
    """The type by number of bits, else by a scheme's name, else by the method; else empty."""
    for level in _levels(quantised):
        bits = next((level[k] for k in ("bits", "w_bit", "num_bits", "nbits") if k in level), None)
        if bits is not None:
            table = _FLOAT_BITS if level.get("type") == "float" else _BITS
            return table.get(int(bits), "") if str(bits) in ("4", "8") else ""
        for name in _NAMED:
            word = level.get(name)
            if isinstance(word, str) and word:
                return next((t for w, t in _WORDS.items() if w in word.lower()), "")
    for flag, kind in (("load_in_4bit", "int4"), ("load_in_8bit", "int8")):
        if quantised.get(flag) is True:
            return kind
    method = quantised.get("quant_method")
    return _METHODS.get(method, "") if isinstance(method, str) else ""


def _levels(quantised: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The section itself, then what it says of weights: by group, or for the whole model."""
    yield quantised
    groups = quantised.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    for holder in (first, quantised.get("global_quant_config"), quantised.get("quant_config")):
        if isinstance(holder, dict):
            for name in ("weights", "weight", "weight_quant_params"):
                if isinstance(holder.get(name), dict):
                    yield holder[name]
