"""litgpt's ``model_config.yaml`` (0.5.13: ``litgpt/config.py``)."""

from __future__ import annotations

from typing import Any

from configurator.core.kinds.mla import Latent
from configurator.interop.export.plain import Plain, grouped_of, plain
from configurator.interop.export.subject import Exported, Subject, refuse

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("litgpt",)
TITLE = "model_config.yaml of litgpt"
_WHO = "litgpt"


def export(subject: Subject) -> Exported:
    """The configuration that ``litgpt pretrain`` takes with ``--model_config``.

    Raises ``UsageError`` for what litgpt has no key for.
    """
    p = plain(subject, _WHO)
    warnings = list(subject.warnings)
    values: dict[str, Any] = {
        "name": "mha-configurator",
        "block_size": int(subject.case.workload.context),
        "n_layer": p.n_layers,
        "n_embd": p.d_model,
        "vocab_size": p.vocab_size,
        "padded_vocab_size": p.vocab_size,
        "n_head": int(p.attention.n_heads),
        **_heads(p),
        **_windows(p),
        **_feed_forward(p),
        "norm_class_name": "RMSNorm",
        "bias": False,
        "lm_head_bias": False,
        "parallel_residual": False,
        "rotary_percentage": 1.0,
    }
    if p.tied:
        warnings.append(
            "litgpt ties the output head by an argument of `litgpt pretrain`, not here: add "
            "--train.tie_embeddings true"
        )
    text = "".join(f"{key}: {_yaml(value)}\n" for key, value in values.items())
    return Exported(
        format=NAMES[0],
        file="model_config.yaml",
        text=text,
        values=values,
        warnings=tuple(warnings),
    )


def _heads(p: Plain) -> dict[str, Any]:
    a = p.attention
    if isinstance(a, Latent):
        if not a.q_lora_rank or a.index_head_dim or a.bias != "none":
            refuse(_WHO, "MLA without a query latent, or with biases", "give --q-lora-rank")
        latent = {
            "q_lora_rank": int(a.q_lora_rank),
            "kv_lora_rank": int(a.kv_lora_rank),
            "qk_rope_head_dim": int(a.qk_rope_head_dim),
            "qk_nope_head_dim": int(a.qk_nope_head_dim),
            "v_head_dim": int(a.v_head_dim),
        }
        return {
            "n_query_groups": int(a.n_heads),
            "head_size": int(a.d_head),
            "latent_attention": latent,
        }
    a = grouped_of(p, _WHO)
    if a.bias not in ("none", "qkv"):
        refuse(_WHO, f"attention biases on {a.bias} without biases elsewhere", "use none")
    return {
        "n_query_groups": int(a.n_kv_heads),
        "head_size": int(a.d_head),
        "attn_bias": a.bias == "qkv",
        "norm_qk": bool(a.qk_norm),
    }


def _windows(p: Plain) -> dict[str, Any]:
    if not p.window:
        return {}
    if isinstance(p.attention, Latent):
        refuse(_WHO, "windows beside MLA", "leave out --window")
    return {
        "sliding_window_size": p.window,
        "sliding_window_indices": [int(w > 0) for w in p.windows],
    }


def _feed_forward(p: Plain) -> dict[str, Any]:
    m = p.mixture
    found: dict[str, Any] = {"mlp_class_name": "LLaMAMLP", "intermediate_size": p.d_ff}
    if m is None:
        return found
    found |= {
        "mlp_class_name": "LLaMAMoE",
        "moe_intermediate_size": int(m.d_ff),
        "n_expert": int(m.n_experts),
        "n_expert_per_token": int(m.experts_per_token),
    }
    if m.shared_d_ff:
        if m.shared_d_ff % m.d_ff:
            refuse(_WHO, f"shared experts of {m.shared_d_ff:,}", f"use a multiple of {m.d_ff:,}")
        found["n_shared_expert"] = int(m.shared_d_ff // m.d_ff)
    if p.n_dense:
        found["first_k_dense_replace"] = p.n_dense
    return found


def _yaml(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(v) for v in value) + "]"
    return str(value)
