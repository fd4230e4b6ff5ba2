"""The classes of transformers that a plain decoder can be written for, plainest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.interop.export.plain import Plain, grouped_of
from configurator.interop.export.subject import refuse

__all__ = ["MAKES", "Make", "make_of"]

WHO = "Hugging Face"


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """A class of transformers: what it can hold, and the keys beyond the common ones.

    ``whole_heads`` marks a class that refuses a width which is no multiple of its query heads.
    """

    model_type: str
    architecture: str
    holds: Callable[[Plain, GroupedQuery | Latent], bool]
    keys: Callable[[Plain], dict[str, Any]] = lambda p: {}
    whole_heads: bool = False


# ---- what a class can hold


def _dense(p: Plain) -> bool:
    return p.mixture is None


def _bare(a: Any, *biases: str) -> bool:
    """Ordinary attention without QK-norm, with one of these biases."""
    return isinstance(a, GroupedQuery) and not a.qk_norm and a.bias in biases


def _normed(a: Any, *biases: str) -> bool:
    return isinstance(a, GroupedQuery) and a.qk_norm and a.bias in biases


def _unshared(p: Plain) -> bool:
    return p.mixture is not None and p.mixture.shared_d_ff == 0


def _shared(p: Plain) -> bool:
    """Shared experts that are whole experts, which is how the classes state them."""
    m = p.mixture
    return m is not None and m.shared_d_ff > 0 and m.shared_d_ff % m.d_ff == 0


def _whole_experts(p: Plain) -> bool:
    return _dense(p) or _unshared(p) or _shared(p)


def _latent(a: Any, *, indexed: bool = False) -> bool:
    return isinstance(a, Latent) and bool(a.index_head_dim) == indexed


# ---- the keys beyond the common ones


def _bias(p: Plain) -> dict[str, Any]:
    return {"attention_bias": getattr(p.attention, "bias", "none") != "none"}


def _one_window(p: Plain) -> dict[str, Any]:
    return {"sliding_window": p.window or None}


def _listed_windows(p: Plain) -> dict[str, Any]:
    if not p.window:
        return {}
    kinds = ["sliding_attention" if w else "full_attention" for w in p.windows]
    return {"sliding_window": p.window, "layer_types": kinds}


def _switched_windows(p: Plain) -> dict[str, Any]:
    found = _listed_windows(p)
    return {"use_sliding_window": True, **found} if found else {"use_sliding_window": False}


def _experts(p: Plain, count: str = "num_experts") -> dict[str, Any]:
    m = p.mixture
    if m is None:
        return {}
    return {
        count: int(m.n_experts),
        "num_experts_per_tok": int(m.experts_per_token),
        "moe_intermediate_size": int(m.d_ff),
    }


def _counted_experts(p: Plain) -> dict[str, Any]:
    """DeepSeek's way: experts after some dense layers; a dense model is dense all the way."""
    m = p.mixture
    found = _experts(p, "n_routed_experts")
    if m is None:  # no layer has experts, but the classes want a count
        found = {"n_routed_experts": 1, "num_experts_per_tok": 1}
    return found | {
        "first_k_dense_replace": p.n_dense if m is not None else p.n_layers,
        "n_shared_experts": int(m.shared_d_ff // m.d_ff) if m is not None else 0,
        "n_group": 1,
        "topk_group": 1,
    }


def _mla(p: Plain) -> dict[str, Any]:
    a = p.attention
    if not isinstance(a, Latent):
        return {}
    found: dict[str, Any] = {
        "num_key_value_heads": int(a.n_heads),
        "q_lora_rank": int(a.q_lora_rank) or None,
        "kv_lora_rank": int(a.kv_lora_rank),
        "qk_nope_head_dim": int(a.qk_nope_head_dim),
        "qk_rope_head_dim": int(a.qk_rope_head_dim),
        "v_head_dim": int(a.v_head_dim),
        "attention_bias": a.bias == "all",
    }
    if a.index_head_dim:
        found |= {
            "index_head_dim": int(a.index_head_dim),
            "index_n_heads": int(a.index_n_heads),
        }
    return found


def _mixtral(p: Plain) -> dict[str, Any]:
    found = _experts(p, "num_local_experts") | _one_window(p)
    found["intermediate_size"] = found.pop("moe_intermediate_size", p.d_ff)
    return found


def _qwen_moe(p: Plain) -> dict[str, Any]:
    front = {"decoder_sparse_step": 1, "mlp_only_layers": list(range(p.n_dense))}
    return _experts(p) | _bias(p) | front


def _mellum(p: Plain) -> dict[str, Any]:
    kinds = ["dense"] * p.n_dense + ["sparse"] * (p.n_layers - p.n_dense)
    return _experts(p) | _bias(p) | _listed_windows(p) | {"mlp_layer_types": kinds}


def _glm(p: Plain) -> dict[str, Any]:
    norm = {"use_qk_norm": bool(getattr(p.attention, "qk_norm", False))}
    return _counted_experts(p) | _bias(p) | norm | {"partial_rotary_factor": 1.0}


def _deepseek(p: Plain) -> dict[str, Any]:
    return _mla(p) | _counted_experts(p)


def _exaone(p: Plain) -> dict[str, Any]:
    found = _counted_experts(p) | _listed_windows(p)
    found["num_experts"] = found.pop("n_routed_experts")
    found["num_shared_experts"] = found.pop("n_shared_experts")
    found["mlp_layer_types"] = ["dense"] * p.n_dense + ["sparse"] * (p.n_layers - p.n_dense)
    return found


MAKES = (
    Make(model_type="llama", architecture="LlamaForCausalLM", keys=_bias, whole_heads=True,
         holds=lambda p, a: _dense(p) and not p.window and _bare(a, "none", "all")),
    Make(model_type="mistral", architecture="MistralForCausalLM", keys=_one_window,
         holds=lambda p, a: _dense(p) and not p.mixed and _bare(a, "none")),
    Make(model_type="ministral", architecture="MinistralForCausalLM", keys=_listed_windows,
         holds=lambda p, a: _dense(p) and _bare(a, "none")),
    Make(model_type="qwen2", architecture="Qwen2ForCausalLM", keys=_switched_windows,
         holds=lambda p, a: _dense(p) and _bare(a, "qkv")),
    Make(model_type="qwen3", architecture="Qwen3ForCausalLM",
         keys=lambda p: _bias(p) | _switched_windows(p),
         holds=lambda p, a: _dense(p) and _normed(a, "none", "all")),
    Make(model_type="mixtral", architecture="MixtralForCausalLM", keys=_mixtral,
         holds=lambda p, a: _unshared(p) and _bare(a, "none") and not p.mixed and not p.n_dense),
    Make(model_type="qwen3_moe", architecture="Qwen3MoeForCausalLM", keys=_qwen_moe,
         holds=lambda p, a: _unshared(p) and _normed(a, "none", "all") and not p.window),
    Make(model_type="mellum", architecture="MellumForCausalLM", keys=_mellum,
         holds=lambda p, a: _unshared(p) and _normed(a, "none", "all")),
    Make(model_type="glm4_moe", architecture="Glm4MoeForCausalLM", keys=_glm,
         holds=lambda p, a: _shared(p) and not p.window
         and (_bare(a, "none", "qkv") or _normed(a, "none", "qkv"))),
    Make(model_type="exaone_moe", architecture="ExaoneMoeForCausalLM", keys=_exaone,
         holds=lambda p, a: _shared(p) and _normed(a, "none")),
    Make(model_type="deepseek_v3", architecture="DeepseekV3ForCausalLM", keys=_deepseek,
         holds=lambda p, a: _latent(a) and _whole_experts(p) and not p.window),
    Make(model_type="deepseek_v32", architecture="DeepseekV32ForCausalLM", keys=_deepseek,
         holds=lambda p, a: _latent(a, indexed=True) and _whole_experts(p)
         and not p.window),
)  # fmt: skip


def make_of(p: Plain) -> tuple[Make, tuple[str, ...]]:
    """The plainest class that holds the geometry and accepts it, and what to know about that.

    Raises ``UsageError`` where no class holds it.
    """
    if isinstance(p.attention, GroupedQuery):
        grouped_of(p, WHO)
    holding = [m for m in MAKES if m.holds(p, p.attention)]
    if not holding:
        refuse(WHO, f"{_described(p)} in one class of transformers", "change one of these")
    plainest, heads = holding[0], int(p.attention.n_heads)
    if not plainest.whole_heads or p.d_model % heads == 0:
        return plainest, ()
    chosen = next((m for m in holding if not m.whole_heads), plainest)
    text = (
        f"transformers 5.24.0 refuses this shape under model_type {plainest.model_type}, since "
        f"hidden_size {p.d_model} is not a multiple of {heads} heads, although no tensor needs it"
    )
    if chosen is not plainest:
        text += f"; written as {chosen.model_type}, which has the same tensors"
    return chosen, (text,)


def _described(p: Plain) -> str:
    a = p.attention
    parts = [a.projection]
    parts += ["QK-norm"] * bool(getattr(a, "qk_norm", False))
    parts += [f"biases on {a.bias}"] * (a.bias != "none")
    parts += ["windows on some layers" if p.mixed else "windows"] * bool(p.window)
    if p.mixture is not None:
        parts.append("a mixture of experts")
        parts += [f"{p.n_dense} dense layers in front"] * bool(p.n_dense)
        shared = int(p.mixture.shared_d_ff)
        parts += [f"shared experts of {shared:,}"] * bool(shared)
    return ", ".join(parts)
