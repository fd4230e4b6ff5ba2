"""Makes ``class_defaults.json``: what configuration classes of transformers fill in by themselves.

Facts only: the default of every sizing key and flag that is not null, for the types that the
reader knows, the classes that nested levels are read as, and other names that a class takes for
its keys. Run as a script, it writes the file.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

__all__ = ["PATH", "made"]

PATH = (
    Path(__file__).resolve().parents[1]
    / "configurator" / "interop" / "huggingface" / "class_defaults.json"
)  # fmt: skip
# Keys that say nothing about sizes: identifiers of tokens, dropout, scales, training, generation.
_IDLE = re.compile(
    r"token|_ids?$|_eps|epsilon|drop|initializ|init_|_init|dtype|label|use_cache|output_|"
    r"return_dict|chunk_size|problem|architectures|transformers_version|summary|scaling|"
    r"_coef|theta|rope|prob|loss|softcap|multiplier|is_decoder|is_encoder|add_cross|suppress|"
    r"mask_|jitter|time_step_(min|max|limit|floor|scale)|threshold|limit|_alpha|_beta|_std$|"
    r"norm_topk|scoring|topk_group|n_group$|topk_method|index_topk|langs|length|sampling|eos|bos|"
    r"pad_|sep_|block_size|kernels|mambapy|associative|use_mem|pretraining_tp|logits|position_ids"
)
_WORDS = re.compile(r"act|type|pattern|proj|rank|head")
_IDLE_ALIASES = ("hidden_act", "activation_function")
_KEEP = ("attention_chunk_size", "qk_rope_head_dim", "vision_feature_layer",
         "mm_tokens_per_image", "model_max_length", "type_vocab_size")  # fmt: skip


def made() -> dict[str, Any]:
    """The table as it should be for the installed transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

    from configurator.interop.huggingface.family import families
    from configurator.interop.huggingface.towers import outer_types
    from configurator.interop.huggingface.towers.blocks import ENCODERS

    nested: dict[str, dict[str, str]] = {}
    for name in sorted(CONFIG_MAPPING_NAMES):
        parts = getattr(CONFIG_MAPPING[name], "sub_configs_defaults", {})
        known = {k: spec.model_type for k, spec in parts.items() if spec.model_type}
        if any(k.endswith(("text_config", "decoder")) or k == "thinker_config" for k in known):
            nested[name] = known
    wanted = {*families(), *outer_types(), *ENCODERS, *nested} & set(CONFIG_MAPPING_NAMES)
    return {
        "defaults": {name: _fields(CONFIG_MAPPING[name]) for name in sorted(wanted)},
        "nested": nested,
        "aliases": {n: a for n in sorted(wanted) if (a := _aliases(CONFIG_MAPPING[n]))},
    }


def _aliases(cls: Any) -> dict[str, str]:
    """Names under which a class takes a sizing key that it calls otherwise."""
    return {
        alias: own for alias, own in cls.attribute_map.items()
        if (own in _KEEP or not _IDLE.search(own)) and alias not in ("layer_types", *_IDLE_ALIASES)
    }  # fmt: skip


def _fields(cls: Any) -> dict[str, Any]:
    found = {}
    for item in dataclasses.fields(cls):
        value = item.default
        if item.default_factory is not dataclasses.MISSING:
            value = item.default_factory()
        if item.name in _KEEP or not _IDLE.search(item.name):
            value = list(value) if isinstance(value, tuple) else value
            if _sizing(item.name, value):
                found[item.name] = value
    return found


def _sizing(name: str, value: Any) -> bool:
    if isinstance(value, bool | int):
        return True
    if isinstance(value, str):
        return bool(_WORDS.search(name))
    return (
        isinstance(value, list)
        and 0 < len(value) <= 16
        and all(isinstance(v, int | str) for v in value)
    )


def text() -> str:
    """The file's text: one type a line."""
    table = made()
    parts = []
    for section, rows in table.items():
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
        parts.append(f"{json.dumps(section)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
