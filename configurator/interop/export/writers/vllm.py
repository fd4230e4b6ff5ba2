"""Flags of ``vllm serve``. The model's folder holds the ``config.json`` of ``--to huggingface``."""

from __future__ import annotations

from typing import Any

from configurator.core.dtypes import LATENT_FP8
from configurator.core.kinds.mla import Latent
from configurator.interop.export.serving import check_ranks, command
from configurator.interop.export.subject import FOLDER, Exported, Subject, refuse
from configurator.interop.export.writers import huggingface

__all__ = ["NAMES", "TITLE", "export"]

NAMES = ("vllm",)
TITLE = "flags of `vllm serve`"
_WHO = "vLLM"
_BLOCKS = (1, 8, 16, 32, 64, 128, 256)  # --block-size
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def export(subject: Subject) -> Exported:
    """Ranks, replicas, lengths and cache type as flags.

    Raises ``UsageError`` for a cache type or a page that vLLM does not have, and
    :class:`RanksError` for ranks that the heads do not allow.
    """
    work, shape = subject.case.workload, subject.case.shape
    if shape.arch != "decoder":
        refuse(_WHO, f"an {shape.arch}", "serve it with transformers: --to huggingface")
    warnings = list(subject.warnings)
    ranks = check_ranks(subject, _WHO)
    if not subject.source:
        warnings += _class_is_there(subject)
    flags: dict[str, Any] = {"--tensor-parallel-size": ranks}
    if subject.replicas > 1:
        flags["--data-parallel-size"] = subject.replicas
    flags["--max-model-len"] = int(work.context)
    flags["--max-num-seqs"] = -(-int(work.batch) // subject.replicas)
    flags["--dtype"] = _weights(subject, warnings)
    flags["--kv-cache-dtype"] = _cache(subject, flags["--dtype"])
    if int(work.page_size) > 1:
        if work.page_size not in _BLOCKS:
            allowed = ", ".join(map(str, _BLOCKS))
            refuse(_WHO, f"pages of {work.page_size} tokens", f"use --page-size {allowed}")
        flags["--block-size"] = int(work.page_size)
    return Exported(
        format=NAMES[0],
        text=command(f"vllm serve {subject.source or FOLDER}", flags),
        values=flags,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _class_is_there(subject: Subject) -> list[str]:
    """Refuse a geometry that no class has; vLLM builds the model by the class that is named."""
    written = huggingface.export(subject)
    return [
        f"{FOLDER} holds the config.json of `--to huggingface` ({written.values['model_type']}) "
        f"and the weights; --load-format dummy runs it without weights",
        *written.warnings,
    ]


def _weights(subject: Subject, warnings: list[str]) -> str:
    name = subject.case.workload.weight_dtype
    if name not in _DTYPES:
        warnings.append(
            f"weights of {name} are read as the checkpoint's quantization_config says; --dtype is "
            f"what is computed in"
        )
    return _DTYPES.get(name, "bfloat16")


def _cache(subject: Subject, computed: str) -> str:
    """``auto`` is the type that is computed in; fp8 is e4m3 but for MLA's mixed layout."""
    kv, attention = subject.case.workload.kv, subject.case.shape.main.attention
    if kv.k != kv.v:
        refuse(_WHO, f"a cache of {kv.name}", "use one type for keys and values")
    if kv.k == LATENT_FP8:
        return LATENT_FP8.name
    if _DTYPES.get(kv.k.name) == computed:
        return "auto"
    if kv.k.name == "fp8" and isinstance(attention, Latent) and attention.index_head_dim:
        refuse(_WHO, "a plain fp8 cache beside a sparse indexer", "use fp8_ds_mla on a file")
    if kv.k.name == "fp8":
        return "fp8"
    return refuse(_WHO, f"a cache of {kv.k.name} beside computing in {computed}", "use bf16 or fp8")
