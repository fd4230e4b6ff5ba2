"""Flags of ``llama-server`` and the GGUF keys of the geometry.

llama.cpp reads weights as GGUF, which its converter makes from a Hugging Face folder; the keys
are those that the converter writes. Cache types: llama.cpp ``common/arg.cpp``.
"""

from __future__ import annotations

from typing import Any

from configurator.core.kinds.mla import Latent
from configurator.interop.export.makes import make_of
from configurator.interop.export.plain import Plain, plain
from configurator.interop.export.serving import command
from configurator.interop.export.subject import Exported, Subject, refuse

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("llama_cpp", "llamacpp", "gguf")
TITLE = "flags of `llama-server` and GGUF keys"
_WHO = "llama.cpp"
_CACHE = {
    "fp32": "f32", "fp16": "f16", "bf16": "bf16", "q8_0": "q8_0", "q5_1": "q5_1", "q5_0": "q5_0",
    "q4_1": "q4_1", "q4_0": "q4_0", "iq4_nl": "iq4_nl",
}  # fmt: skip
_ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "mixtral": "llama",
    "qwen3_moe": "qwen3moe", "glm4_moe": "glm4moe",
    "deepseek_v3": "deepseek2",
}  # fmt: skip
_BLOCK = 32


def export(subject: Subject) -> Exported:
    """Lengths, slots and cache types as flags, and the geometry as GGUF keys.

    ``--ctx-size`` is shared by the slots, so it is context times batch. Raises ``UsageError`` for
    what llama.cpp has no flag or key for.
    """
    work = subject.case.workload
    warnings = list(subject.warnings)
    if int(work.tensor_parallel) > 1:
        refuse(
            _WHO,
            f"{work.tensor_parallel} ranks that share the heads",
            "use --tensor-parallel 1: llama.cpp spreads whole layers over devices",
        )
    keys: dict[str, Any] = {}
    if not subject.source:
        keys = _gguf(subject, warnings)
    k, v = (_cache(subject, t) for t in (work.kv.k.name, work.kv.v.name))
    flags: dict[str, Any] = {
        "--model": "MODEL.gguf",
        "--ctx-size": int(work.context) * int(work.batch),
        "--parallel": int(work.batch),
        "--cache-type-k": k,
        "--cache-type-v": v,
    }
    if work.kv.v.block > 1:
        flags["--flash-attn"] = "on"  # a quantised V cache works with flash attention only
    if k != v or k not in ("f16", "bf16", "q8_0", "q4_0"):
        warnings.append(
            f"cache types {k} and {v} need a build with GGML_CUDA_FA_ALL_QUANTS on CUDA"
        )
    if int(work.page_size) > 1:
        warnings.append(f"llama.cpp has no pages: --page-size {work.page_size} is not used")
    comments = "".join(f"# {name} = {value}\n" for name, value in keys.items())
    return Exported(
        format=NAMES[0],
        text=comments + command("llama-server", flags),
        values={"flags": flags, "gguf": keys},
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _cache(subject: Subject, name: str) -> str:
    if name not in _CACHE:
        refuse(_WHO, f"a cache of {name}", f"use {', '.join(_CACHE)}")
    attention = subject.case.shape.main.attention
    width = int(getattr(attention, "latent_width", 0) or getattr(attention, "d_head", 0))
    if name.startswith("q") and width % _BLOCK:
        refuse(
            _WHO,
            f"a cache of {name} for heads of {width}, since its blocks hold {_BLOCK} values",
            "use f16, or a head width that is a multiple of 32",
        )
    return _CACHE[name]


def _gguf(subject: Subject, warnings: list[str]) -> dict[str, Any]:
    p = plain(subject, _WHO)
    make, notes = make_of(p)
    warnings += notes
    if p.window or make.model_type not in _ARCHITECTURES:
        what = "sliding windows in these architectures" if p.window else f"{make.model_type}"
        refuse(_WHO, what, "use full attention, or --to vllm")
    arch = _ARCHITECTURES[make.model_type]
    found: dict[str, Any] = {
        "general.architecture": arch,
        f"{arch}.context_length": int(subject.case.workload.context),
        f"{arch}.embedding_length": p.d_model,
        f"{arch}.block_count": p.n_layers,
        f"{arch}.feed_forward_length": p.d_ff,
        f"{arch}.vocab_size": p.vocab_size,
    }
    found |= {f"{arch}.{key}": value for key, value in (_heads(p) | _experts(p, arch)).items()}
    if p.tied:
        warnings.append("tied: the GGUF holds no output.weight")
    return found


def _heads(p: Plain) -> dict[str, Any]:
    a = p.attention
    if not isinstance(a, Latent):
        return {
            "attention.head_count": int(a.n_heads),
            "attention.head_count_kv": int(a.kv_heads),
            "attention.key_length": int(a.d_head),
            "attention.value_length": int(a.v_width),
        }
    found: dict[str, Any] = {
        "attention.head_count": int(a.n_heads),
        "attention.head_count_kv": 1,
        "attention.key_length": int(a.latent_width),
        "attention.value_length": int(a.kv_lora_rank),
        "attention.key_length_mla": int(a.d_head),
        "attention.value_length_mla": int(a.v_width),
        "attention.kv_lora_rank": int(a.kv_lora_rank),
        "rope.dimension_count": int(a.qk_rope_head_dim),
    }
    if a.q_lora_rank:
        found["attention.q_lora_rank"] = int(a.q_lora_rank)
    return found


def _experts(p: Plain, arch: str) -> dict[str, Any]:
    m = p.mixture
    found: dict[str, Any] = {}
    if arch in ("deepseek2", "glm4moe"):
        found["leading_dense_block_count"] = p.n_dense
    if m is None:
        return found
    found |= {
        "expert_count": int(m.n_experts),
        "expert_used_count": int(m.experts_per_token),
    }
    if arch != "llama":
        found["expert_feed_forward_length"] = int(m.d_ff)
    if m.shared_d_ff:
        found["expert_shared_count"] = int(m.shared_d_ff // m.d_ff)
    return found
