"""A model configuration for torchtitan 0.3: a Python file that builds it from its public parts.

The classes are those of its llama3 (dense), qwen3 (QK-norm, experts) and deepseek_v3 (MLA).
"""

from __future__ import annotations

from typing import Any

from configurator.core.initialization import initialization
from configurator.core.kinds.mla import Latent
from configurator.interop.export.plain import Plain, grouped_of, plain
from configurator.interop.export.subject import Exported, RanksError, Subject, refuse

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("torchtitan", "titan")
TITLE = "a model configuration of torchtitan, as a Python file"
_WHO = "torchtitan"

_HEAD = '''"""A model for torchtitan 0.3 with {params:,} parameters, written by mha-configurator.

Register it in the flavors of torchtitan.models.{module}; train with
parallelism.tensor_parallel_degree {ranks}.
"""

from functools import partial

import torch.nn as nn
{imports}

SHAPE = {shape}
LINEAR = {{"weight": partial(nn.init.normal_, std={std}), "bias": nn.init.zeros_}}
OUTPUT = {{"weight": partial(nn.init.normal_, std={output_std}), "bias": nn.init.zeros_}}
EXPERTS = {{"w1_EFD": LINEAR["weight"], "w2_EDF": OUTPUT["weight"], "w3_EFD": LINEAR["weight"]}}


def norm(width):
    return RMSNorm.Config(normalized_shape=width, param_init={{"weight": nn.init.ones_}})


{layers}

def model_config(attn_backend="flex", moe_comm_backend="standard"):
    dim, vocab_size = SHAPE["dim"], SHAPE["vocab_size"]
    return {model}.Config(
        dim=dim,
        vocab_size=vocab_size,
        enable_weight_tying=SHAPE["enable_weight_tying"],
        tok_embeddings=Embedding.Config(
            num_embeddings=vocab_size, embedding_dim=dim, param_init=LINEAR
        ),
        norm=norm(dim),
        lm_head=Linear.Config(in_features=dim, out_features=vocab_size, param_init=LINEAR),
        layers=layers(attn_backend, moe_comm_backend),
    )
'''

_GROUPED = """def layers(attn_backend, moe_comm_backend):
    return [layer(i, attn_backend, moe_comm_backend) for i in range(SHAPE["n_layers"])]


def layer(i, attn_backend, moe_comm_backend):
    dim, head_dim = SHAPE["dim"], SHAPE["head_dim"]
    return {block}.Config(
        attention_norm=norm(dim),
        ffn_norm=norm(dim),
        attention=make_gqa_config(
            dim=dim,
            n_heads=SHAPE["n_heads"],
            n_kv_heads=SHAPE["n_kv_heads"],
            head_dim=head_dim,
            wqkv_param_init=LINEAR,
            wo_param_init=OUTPUT,
            inner_attention=get_attention_config(attn_backend),
            rope={rope}.Config(dim=head_dim, max_seq_len=SHAPE["max_seq_len"]),
            qk_norm=norm(head_dim) if SHAPE["qk_norm"] else None,
        ),
        feed_forward=feed_forward(SHAPE["hidden_dim"]) if i < SHAPE["n_dense_layers"] else None,
        moe=None if i < SHAPE["n_dense_layers"] else moe(moe_comm_backend),
    )


def feed_forward(width):
    return make_ffn_config(
        dim=SHAPE["dim"], hidden_dim=width, w1_param_init=LINEAR, w2w3_param_init=OUTPUT
    )


def moe(comm_backend):
    dim, experts, top_k = SHAPE["dim"], SHAPE["num_experts"], SHAPE["top_k"]
    shared = SHAPE["shared_hidden_dim"]
    return make_moe_config(
        num_experts=experts,
        router=make_router_config(
            dim=dim,
            num_experts=experts,
            gate_param_init=LINEAR,
            top_k=top_k,
            score_func="softmax",
            route_norm=True,
        ),
        routed_experts=make_routed_experts_config(
            dim=dim,
            hidden_dim=SHAPE["moe_hidden_dim"],
            num_experts=experts,
            top_k=top_k,
            param_init=EXPERTS,
            comm_backend=comm_backend,
        ),
        shared_experts=feed_forward(shared) if shared else None,
    )

"""

_LATENT = """def layers(attn_backend, moe_comm_backend):
    names = (
        "n_layers n_dense_layers dim n_heads q_lora_rank kv_lora_rank qk_nope_head_dim "
        "qk_rope_head_dim v_head_dim dense_hidden_dim moe_hidden_dim num_experts "
        "num_shared_experts router_top_k"
    ).split()
    return build_mla_moe_layers(
        **{name: SHAPE[name] for name in names},
        mscale=1.0,
        router_score_func="sigmoid",
        router_route_norm=True,
        attn_backend=attn_backend,
        moe_comm_backend=moe_comm_backend,
        non_blocking_capacity_factor=None,
        linear_init=LINEAR,
        norm_init={"weight": nn.init.ones_},
        depth_init=lambda i: OUTPUT,
        depth_experts_init=lambda i: EXPERTS,
        rope=ComplexRoPE.Config(
            dim=SHAPE["qk_rope_head_dim"], max_seq_len=SHAPE["max_seq_len"]
        ),
    )

"""

_IMPORTS = {
    "llama3": "Llama3Model, Llama3TransformerBlock",
    "qwen3": "Qwen3Model, Qwen3TransformerBlock",
    "deepseek_v3": "DeepSeekV3Model",
}
_HELPERS = """from torchtitan.models.common.config_utils import (
    get_attention_config,
    make_ffn_config,
    make_gqa_config,
    make_moe_config,
    make_routed_experts_config,
    make_router_config,
)"""


def export(subject: Subject) -> Exported:
    """The file, and its numbers as values.

    Raises ``UsageError`` for what these classes do not have, and :class:`RanksError` for ranks
    that do not divide the query heads and the KV heads.
    """
    p = plain(subject, _WHO)
    if p.window:
        refuse(_WHO, "sliding windows in these classes", "leave out --window")
    ranks = _ranks(p, int(subject.case.workload.tensor_parallel))
    latent = isinstance(p.attention, Latent)
    shape = _common(p, int(subject.case.workload.context))
    shape |= _latent(p) if latent else _grouped(p)
    qwen = shape.get("qk_norm") or p.mixture is not None
    module = "deepseek_v3" if latent else "qwen3" if qwen else "llama3"
    rope = "CosSinRoPE" if module == "qwen3" else "ComplexRoPE"
    model, block = (*_IMPORTS[module].split(", "), "")[:2]
    std = initialization(subject.case).recommended
    text = _HEAD.format(
        params=p.params,
        module=module,
        ranks=ranks,
        imports="\n".join(_imports(module, rope)),
        shape=_literal(shape),
        std=float(f"{std['q']:.6g}"),
        output_std=float(f"{std['o']:.6g}"),
        layers=_LATENT if latent else _GROUPED.format(block=block, rope=rope),
        model=model,
    )
    values = {"model": module, "tensor_parallel_degree": ranks, **shape}
    return Exported(
        format=NAMES[0],
        file="mha_configurator_model.py",
        text=text,
        values=values,
        warnings=(*subject.warnings,),
    )


def _imports(module: str, rope: str) -> list[str]:
    found = [f"from torchtitan.models.common import {rope}, Embedding, Linear"]
    if module != "deepseek_v3":
        found.append(_HELPERS)
    found.append("from torchtitan.models.common.nn_modules import RMSNorm")
    if module == "deepseek_v3":
        found.append("from torchtitan.models.deepseek_v3 import build_mla_moe_layers")
    found.append(f"from torchtitan.models.{module}.model import {_IMPORTS[module]}")
    return found


def _ranks(p: Plain, ranks: int) -> int:
    heads = [int(p.attention.n_heads)]
    if not isinstance(p.attention, Latent):
        heads.append(int(p.attention.n_kv_heads))
    if any(n % ranks for n in heads):
        raise RanksError(
            f"{_WHO} cannot split {' query heads and '.join(map(str, heads))} heads over {ranks} "
            f"ranks: it does not copy KV heads; use --tensor-parallel that divides them"
        )
    return ranks


def _common(p: Plain, context: int) -> dict[str, Any]:
    if p.attention.bias != "none":
        refuse(_WHO, f"attention biases on {p.attention.bias}", "use none")
    return {
        "dim": p.d_model,
        "n_layers": p.n_layers,
        "vocab_size": p.vocab_size,
        "max_seq_len": context,
        "enable_weight_tying": p.tied,
        "n_heads": int(p.attention.n_heads),
        "n_dense_layers": p.n_dense,
    }


def _grouped(p: Plain) -> dict[str, Any]:
    a, m = grouped_of(p, _WHO), p.mixture
    found: dict[str, Any] = {
        "n_kv_heads": int(a.n_kv_heads),
        "head_dim": int(a.d_head),
        "qk_norm": bool(a.qk_norm),
        "hidden_dim": p.d_ff,
    }
    if m is not None:
        found |= {
            "moe_hidden_dim": int(m.d_ff),
            "num_experts": int(m.n_experts),
            "top_k": int(m.experts_per_token),
            "shared_hidden_dim": int(m.shared_d_ff),
        }
    return found


def _latent(p: Plain) -> dict[str, Any]:
    a, m = p.attention, p.mixture
    if not isinstance(a, Latent) or a.index_head_dim:
        refuse(_WHO, "MLA with a sparse indexer", "use deepseek_v3's dimensions without one")
    if m is not None and (not m.shared_d_ff or m.shared_d_ff % m.d_ff):
        refuse(_WHO, "MLA with experts and no whole shared one", "export to huggingface")
    return {
        "q_lora_rank": int(a.q_lora_rank),
        "kv_lora_rank": int(a.kv_lora_rank),
        "qk_nope_head_dim": int(a.qk_nope_head_dim),
        "qk_rope_head_dim": int(a.qk_rope_head_dim),
        "v_head_dim": int(a.v_head_dim),
        "dense_hidden_dim": p.d_ff,
        "moe_hidden_dim": int(m.d_ff) if m else p.d_ff,
        "num_experts": int(m.n_experts) if m else 1,
        "num_shared_experts": int(m.shared_d_ff // m.d_ff) if m else 0,
        "router_top_k": int(m.experts_per_token) if m else 1,
    }


def _literal(shape: dict[str, Any]) -> str:
    """A dict of Python, one key a line."""
    return "{\n" + "".join(f'    "{k}": {v!r},\n' for k, v in shape.items()) + "}"
