"""Arguments of Megatron-LM's ``pretrain_gpt.py`` (Megatron-core 0.16)."""

from __future__ import annotations

from typing import Any

from configurator.core.kinds.mla import Latent
from configurator.interop.export.plain import Plain, grouped_of, plain
from configurator.interop.export.serving import check_ranks, command
from configurator.interop.export.subject import Exported, Subject, refuse

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("megatron", "megatron_lm", "mcore")
TITLE = "arguments of Megatron-LM's pretrain_gpt.py"
_WHO = "Megatron"


def export(subject: Subject) -> Exported:
    """The geometry, its split and its vocabulary as arguments.

    Raises ``UsageError`` for what Megatron has no argument for, and :class:`RanksError` for ranks
    that the heads do not allow.
    """
    p = plain(subject, _WHO)
    ranks = check_ranks(subject, _WHO)
    warnings = list(subject.warnings)
    context = int(subject.case.workload.context)
    flags: dict[str, Any] = {
        "--num-layers": p.n_layers,
        "--hidden-size": p.d_model,
        "--ffn-hidden-size": p.d_ff,
        "--num-attention-heads": int(p.attention.n_heads),
        **_heads(p, ranks),
        **_windows(p),
        **_experts(p),
        "--swiglu": True,
        "--normalization": "RMSNorm",
        "--disable-bias-linear": True,
        "--position-embedding-type": "rope",
        "--seq-length": context,
        "--max-position-embeddings": context,
        "--vocab-size": p.vocab_size,
        "--make-vocab-size-divisible-by": 1,
        "--tensor-model-parallel-size": ranks,
    }
    if not p.tied:
        flags["--untie-embeddings-and-output-weights"] = True
    if p.vocab_size % ranks:
        padded = -(-p.vocab_size // ranks) * ranks
        warnings.append(
            f"Megatron pads the vocabulary from {p.vocab_size:,} to {padded:,}, a multiple of "
            f"{ranks} ranks"
        )
    return Exported(
        format=NAMES[0],
        text=command("pretrain_gpt.py", flags),
        values=flags,
        warnings=tuple(warnings),
    )


def _heads(p: Plain, ranks: int) -> dict[str, Any]:
    a = p.attention
    if isinstance(a, Latent):
        return _latent(a, ranks)
    a = grouped_of(p, _WHO)
    if a.bias not in ("none", "qkv"):
        refuse(_WHO, f"attention biases on {a.bias} without biases elsewhere", "use none")
    found: dict[str, Any] = {"--kv-channels": int(a.d_head)}
    if a.n_kv_heads != a.n_heads:
        found |= {"--group-query-attention": True, "--num-query-groups": int(a.n_kv_heads)}
    if a.bias == "qkv":
        found["--add-qkv-bias"] = True
    if a.qk_norm:
        found["--qk-layernorm"] = True
    return found


def _latent(a: Latent, ranks: int) -> dict[str, Any]:
    if a.index_head_dim or a.bias != "none":
        refuse(_WHO, "MLA with an indexer or biases", "leave them out")
    for name, width in (("q_lora_rank", a.q_lora_rank), ("the key latent", a.latent_width)):
        if int(width) % ranks:
            refuse(_WHO, f"{name} {width} on {ranks} ranks", "use ranks that divide it")
    found: dict[str, Any] = {
        "--multi-latent-attention": True,
        "--kv-channels": int(a.qk_nope_head_dim),
        "--kv-lora-rank": int(a.kv_lora_rank),
        "--qk-head-dim": int(a.qk_nope_head_dim),
        "--qk-pos-emb-head-dim": int(a.qk_rope_head_dim),
        "--v-head-dim": int(a.v_head_dim),
        "--qk-layernorm": True,  # the norms on both latents
        "--rope-type": "rope",
    }
    if a.q_lora_rank:
        found["--q-lora-rank"] = int(a.q_lora_rank)
    return found


def _windows(p: Plain) -> dict[str, Any]:
    """A window of W tokens is the token itself and W - 1 to its left."""
    if not p.window:
        return {}
    if isinstance(p.attention, Latent):
        refuse(_WHO, "windows beside MLA", "leave out --window")
    found: dict[str, Any] = {"--window-size": f"({p.window - 1},0)"}
    if p.mixed:
        listed = ",".join(str(int(w > 0)) for w in p.windows)
        found["--window-attn-skip-freq"] = f"[{listed}]"
    return found


def _experts(p: Plain) -> dict[str, Any]:
    m = p.mixture
    if m is None:
        return {}
    found: dict[str, Any] = {
        "--num-experts": int(m.n_experts),
        "--moe-router-topk": int(m.experts_per_token),
        "--moe-ffn-hidden-size": int(m.d_ff),
        "--moe-layer-freq": f"[0]*{p.n_dense}+[1]*{p.n_layers - p.n_dense}",
    }
    if m.shared_d_ff:
        found["--moe-shared-expert-intermediate-size"] = int(m.shared_d_ff)
    return found
