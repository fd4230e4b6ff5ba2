"""Element types of weights and caches, by block: a quantised block carries its scales along.

Block sizes are those of llama.cpp's ``ggml-common.h`` (q8_0: 34 bytes per 32 values, q5_1: 24,
q5_0: 22, q4_1: 20, q4_0 and iq4_nl: 18) and of NVFP4 (8 bytes of values and a one-byte scale per
16).
"""

from __future__ import annotations

from dataclasses import dataclass

from configurator.core.errors import unknown
from configurator.core.units import Count

__all__ = ["DTYPES", "CacheType", "DType", "cache_type", "dtype"]


@dataclass(frozen=True, slots=True)
class DType:
    """An element type stored as ``block_bytes`` bytes per ``block`` values."""

    name: str
    block_bytes: int
    block: int = 1

    @property
    def bytes_per_element(self) -> float:
        """Average bytes of one value, scales included."""
        return self.block_bytes / self.block

    def bytes_for(self, elements: Count) -> Count:
        """Bytes of a row of ``elements`` values; a block once begun is stored whole."""
        if self.block == 1:
            return elements * self.block_bytes
        return -(-elements // self.block) * self.block_bytes


DTYPES = {
    t.name: t
    for t in (
        DType("fp32", 4),
        DType("fp16", 2),
        DType("bf16", 2),
        DType("fp8", 1),
        DType("int8", 1),
        DType("int4", 1, 2),
        DType("q8_0", 34, 32),
        DType("q5_1", 24, 32),
        DType("q5_0", 22, 32),
        DType("q4_1", 20, 32),
        DType("q4_0", 18, 32),
        DType("iq4_nl", 18, 32),
        DType("nvfp4", 9, 16),
    )
}
# A cache layout that mixes types, so its bytes are the attention kind's business. Only what knows
# that it has a latent may use it: `cache_type` does not accept the name.
LATENT_FP8 = DType("fp8_ds_mla", 1)
_ALIASES = {
    "float32": "fp32",
    "f32": "fp32",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp4": "nvfp4",
}


def dtype(name: str, what: str = "dtype") -> DType:
    """The element type called ``name``; raises ``UsageError`` with the nearest names."""
    key = str(name).strip().lower().removeprefix("torch.")
    key = _ALIASES.get(key, key)
    if key not in DTYPES:
        raise unknown(what, str(name), DTYPES, f"known: {', '.join(DTYPES)}")
    return DTYPES[key]


@dataclass(frozen=True, slots=True)
class CacheType:
    """Element types of cached keys and of cached values, which may differ."""

    k: DType
    v: DType

    @property
    def name(self) -> str:
        """``bf16``, or ``k=q8_0,v=q4_0`` where the two differ."""
        return self.k.name if self.k == self.v else f"k={self.k.name},v={self.v.name}"


def cache_type(name: str | CacheType, what: str = "kv-dtype") -> CacheType:
    """A cache type: one name for both, or ``k=q8_0,v=q4_0``."""
    if isinstance(name, CacheType):
        return name
    text = str(name).strip().lower().replace(" ", "")
    if "=" not in text:
        one = dtype(text, what)
        return CacheType(one, one)
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if set(parts) != {"k", "v"}:
        raise unknown(what, str(name), DTYPES, "write one type, or k=q8_0,v=q4_0")
    return CacheType(dtype(parts["k"], what), dtype(parts["v"], what))
