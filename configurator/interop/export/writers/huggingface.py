"""A Hugging Face ``config.json``, under the plainest class of transformers that has the geometry.

What is written is read back by the audit's own reader, and refused where it says anything else.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from configurator.core.cost import params_total
from configurator.core.dtypes import dtype
from configurator.core.errors import UsageError
from configurator.core.kinds.mla import Latent
from configurator.core.layers import FeedForward
from configurator.interop.export.makes import make_of
from configurator.interop.export.plain import plain
from configurator.interop.export.subject import Exported, Subject
from configurator.interop.export.t5 import t5_values
from configurator.interop.huggingface.family import Layer
from configurator.interop.huggingface.reading import read_shape

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("huggingface", "hf", "transformers")
TITLE = "config.json for transformers and the servers that read it"
_WHO = "Hugging Face"
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_ROPE_FROM = 8192


def export(subject: Subject) -> Exported:
    """The ``config.json`` of a decoder, or T5's of an encoder or an encoder-decoder."""
    if subject.case.shape.arch != "decoder":
        values, warnings, beside = t5_values(subject)
    else:
        values, warnings = _decoder(subject)
        beside = 0
    _check(values, subject, beside)
    work = subject.case.workload
    values["dtype"] = _DTYPES.get(work.weight_dtype, "bfloat16")
    if work.weight_dtype not in _DTYPES:
        name = dtype(work.weight_dtype, "weight-dtype").name
        warnings.append(
            f"weights of {name} are made by a quantiser, which adds its own quantization_config; "
            f"this file says bfloat16"
        )
    return Exported(
        format=NAMES[0],
        file="config.json",
        text=json.dumps(values, indent=2) + "\n",
        values=values,
        warnings=tuple(warnings),
    )


def _decoder(subject: Subject) -> tuple[dict[str, Any], list[str]]:
    p = plain(subject, _WHO)
    make, notes = make_of(p)
    a, warnings = p.attention, list(notes)
    values: dict[str, Any] = {
        "architectures": [make.architecture],
        "model_type": make.model_type,
        "hidden_size": p.d_model,
        "num_hidden_layers": p.n_layers,
        "num_attention_heads": int(a.n_heads),
        "num_key_value_heads": int(a.kv_heads),
        "head_dim": int(a.d_head),
        "intermediate_size": p.d_ff,
        "vocab_size": p.vocab_size,
        "max_position_embeddings": int(subject.case.workload.context),
        "tie_word_embeddings": p.tied,
        "hidden_act": "silu",
    }
    if isinstance(a, Latent):
        del values["head_dim"]
    values |= make.keys(p)
    if values["max_position_embeddings"] > _ROPE_FROM:
        warnings.append(
            f"rope_theta is left at the class's own; set rope_parameters for the "
            f"{values['max_position_embeddings']:,} positions you train"
        )
    return values, warnings


# ---- read back


def _check(values: dict[str, Any], subject: Subject, beside: int) -> None:
    """Refuse to write what the audit would read as another model."""
    back = read_shape(values)
    found, wanted = int(params_total(back.shape)), int(params_total(subject.case.shape)) + beside
    if found != wanted or _counted(back.layers) != _counted(subject.layers):
        raise UsageError(
            f"{_WHO} cannot express this model exactly: {values['model_type']} would have "
            f"{found:,} parameters, not {wanted:,}; use the model's own config.json"
        )


def _counted(layers: tuple[Layer, ...]) -> Counter[tuple[Any, ...]]:
    return Counter(_fingerprint(layer) for layer in layers)


def _fingerprint(layer: Layer) -> tuple[Any, ...]:
    a, ff = layer.attention, layer.feed_forward
    heads = (a.projection, a.n_heads, a.kv_heads, a.cache_elements(), a.params()) if a else ()
    scope = (layer.scope.kind, layer.scope.size if layer.scope.kind == "window" else 0)
    return (heads, scope, layer.norm_params, _feed_forward(ff))


def _feed_forward(ff: FeedForward | None) -> tuple[Any, ...]:
    return () if ff is None else (ff.kind, ff.d_ff, ff.n_experts, ff.experts_per_token, ff.params())
