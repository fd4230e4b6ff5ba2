"""Whether the output head is the embedding: which level's ``tie_word_embeddings`` a class takes.

A composite class of transformers 5.24 takes the flag of its own level, the one around the text
model. Some hand a text model's true on to it, and some have no tied head at all. A test compares
both lists with the installed release.
"""

from __future__ import annotations

from dataclasses import replace

from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.defaults import class_defaults, nested_type
from configurator.interop.huggingface.family import Family, resolve

__all__ = ["FORWARDED", "NEVER", "TEXT", "is_tied"]

_KEY = "tie_word_embeddings"
NEVER = frozenset({
    "audioflamingo3", "mllama", "musicflamingo", "nemo_speechlm", "omniasr", "qwen2_audio",
    "vibevoice_asr", "voxtral",
})  # fmt: skip
TEXT = frozenset({"blip-2", "instructblip", "instructblipvideo", "llama4", "nemotron_h_omni"})
"""The text section is a whole language model with a head: its own flag decides."""
FORWARDED = frozenset({
    "fast_vlm", "glm4v", "glm4v_moe", "glm_ocr", "hunyuan_vl", "llava", "llava_next_video",
    "llava_onevision", "minimax_m3_vl", "paddleocr_vl", "qwen2_5_vl", "qwen2_vl", "shieldgemma2",
    "vibevoice", "video_llama_3",
})  # fmt: skip
"""True in the text section counts even where the level around it says false."""
_SILENT = frozenset({"perception_lm"})  # its own flag where stated, else the text section's


def is_tied(text: Config, top: Config, family: Family) -> bool:
    """The flag that the model's class takes, at the level where it takes it."""
    outer = _around(top, text)
    outer = text if outer.model_type in TEXT else outer
    if family.tied is None or (outer is not text and outer.model_type in NEVER):
        for config in (outer, text):
            if config.has(_KEY) and config.flag(_KEY):
                config.notes.warn(
                    f"{config.key(_KEY)} is true, but {outer.model_type} has a head of its own in "
                    f"transformers 5.24 whatever the file says; it is counted"
                )
        return False
    known = nested_type(outer.model_type, text.path.rstrip(".").rpartition(".")[2])
    if outer is text or not known or outer.model_type in _SILENT:
        return _outermost(text, outer, family)
    tied = outer.flag(_KEY) or (outer.model_type in FORWARDED and _own(text, family))
    if tied and not outer.has(_KEY) and text.has(_KEY) and not text.flag(_KEY):
        text.notes.warn(
            f"{text.key(_KEY)} is false, but {outer.model_type} ties by default in transformers "
            f"5.24 unless the weights hold a head of their own; released weights of such files "
            f"do, and so does this count"
        )
        return False
    return tied


def _own(config: Config, family: Family) -> bool:
    """The flag at one level; without a statement or a class default, the family's."""
    if config.is_null(_KEY) or config.find(_KEY) is not None:
        return config.flag(_KEY)
    return bool(resolve(family.tied, config))


def _outermost(text: Config, outer: Config, family: Family) -> bool:
    """The outermost statement; without one, the outermost class default."""
    for config in (outer, text):
        if config.has(_KEY):
            return config.flag(_KEY)
    if outer.is_null(_KEY):
        return False
    return outer.flag(_KEY) if outer.find(_KEY) is not None else _own(text, family)


def _around(top: Config, text: Config) -> Config:
    """The level that holds the text section: the top, or Omni's thinker."""
    level = top
    for key in text.path.rstrip(".").split(".")[:-1]:
        inner = level.section(key, "")
        if inner is None:
            return level
        kind = inner.text("model_type") or nested_type(level.model_type, key)
        level = replace(inner, model_type=kind, defaults=class_defaults(kind))
    return level
