"""Decoders of Llama's make: RMS norms, gated feed-forward, rotary positions; dense ones here."""

from __future__ import annotations

from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family
from configurator.interop.huggingface.rules import (
    alternate,
    bias_if,
    flagged,
    from_first,
    full_every,
    picks,
    tail_windows,
)
from configurator.interop.huggingface.scopes import FULL, WINDOW, every, window_size

__all__ = ["FAMILIES"]


def _every_fourth(config: Config, n: int) -> list[str]:
    """OLMo 3's class reads no period: three windowed layers, then a full one."""
    return every(4, n) if window_size(config) else [FULL] * n


def _where_no_positions(config: Config, n: int) -> list[str]:
    """SmolLM3: windows, once switched on, lie in the layers that do not rotate (every 4th)."""
    rotates = config.per_layer("no_rope_layers", n, least=0)
    if rotates is None:
        interval = config.count("no_rope_layer_interval", 4)
        rotates = [int((i + 1) % interval != 0) for i in range(n)]
    return [FULL if r or not window_size(config) else WINDOW for r in rotates]


def _phi_norm(config: Config) -> str:
    return "layer" if config.flag("qk_layernorm") else "none"


def _stablelm_norms(config: Config) -> int:
    return 1 if config.flag("use_parallel_residual") else 2


def _stablelm_qk_norm(config: Config) -> str:
    return "heads" if config.flag("qk_layernorm") else "none"


LLAMA = Family(mlp_bias=flagged("mlp_bias"))
QWEN2 = Family(bias="qkv", pattern=tail_windows)

FAMILIES = {
    "llama": LLAMA,
    "mistral": Family(bias="none", missing_null="warn"),
    "ministral": Family(bias="none"),
    "ministral3": Family(bias="none"),
    "qwen2": QWEN2,
    "qwen3": Family(qk_norm="head", pattern=tail_windows),
    "gemma": Family(tied=True, missing_null="refuse"),
    "phi3": Family(bias="none"),
    **{
        name: Family(
            bias="none",
            notes=("image and audio encoders and their adapters are not counted",),
        )
        for name in ("phi4_multimodal", "phi4mm", "phi3_v")
    },
    "granite": Family(mlp_bias=flagged("mlp_bias")),
    "olmo": Family(norm="none"),
    "olmo2": Family(qk_norm="width"),
    "olmo3": Family(qk_norm="width", pattern=_every_fourth),
    "cohere": Family(norm="bare", norms=1, qk_norm=picks("use_qk_norm", "heads", "none"),
                     tied=True),
    "cohere2": Family(norm="bare", norms=1, tied=True,
                      pattern=full_every("sliding_window_pattern", 4)),
    "helium": Family(bias=bias_if("attention_bias", "qkv"), mlp_bias=flagged("mlp_bias")),
    "glm": Family(bias=bias_if("attention_bias", "qkv"), missing_null="refuse"),
    "glm4": Family(bias=bias_if("attention_bias", "qkv"), norms=4, missing_null="refuse"),
    "smollm3": Family(mlp_bias=flagged("mlp_bias"), tied=True, pattern=_where_no_positions),
    "seed_oss": Family(
        bias=lambda c: {(True, True): "all", (True, False): "qkv", (False, True): "o"}.get(
            (c.flag("attention_bias"), c.flag("attention_out_bias")), "none"
        ),
        mlp_bias=flagged("mlp_bias"),
    ),
    "exaone": LLAMA,
    "exaone4": Family(
        bias="none", qk_norm="head", pattern=full_every("sliding_window_pattern", 4),
        missing_null="refuse",
    ),
    "arcee": Family(gated=False, mlp_bias=flagged("mlp_bias")),
    "ernie4_5": Family(
        bias=bias_if("use_bias", "all"), mlp_bias=flagged("use_bias"), tied=True
    ),
    "hunyuan_v1_dense": Family(qk_norm="head"),
    "cwm": Family(pattern=from_first(4), mlp_bias=flagged("mlp_bias")),
    "apertus": Family(qk_norm="head", gated=False, mlp_bias=flagged("mlp_bias"),
                      layer_extra=lambda config, i, kind: 2 * (
                          config.text("hidden_act", "xielu") == "xielu")),
    "internlm3": Family(
        bias=bias_if("qkv_bias", "all"), mlp_bias=flagged("bias")
    ),
    "vaultgemma": Family(tied=True, pattern=alternate),
    "diffllama": Family(
        layer_extra=lambda config, i, kind: 4 * config.count(
            "head_dim", config.count("hidden_size") // config.count("num_attention_heads")
        ),
    ),
    "nanochat": Family(norm="none", gated=False),
    "hyperclovax": Family(
        norms=picks("use_post_norm", 4, 2), mlp_bias=flagged("mlp_bias"),
    ),
    "bitnet": Family(
        layer_extra=lambda c, i, kind: c.count("hidden_size") + c.count("intermediate_size"),
        tied=False,
    ),
    "stablelm": Family(
        norm="layer", norms=_stablelm_norms, bias=bias_if("use_qkv_bias", "qkv"),
        qk_norm=_stablelm_qk_norm, missing_null="refuse",
    ),
    "starcoder2": Family(
        norm="layer", bias=bias_if("use_bias", "all", True), gated=False,
        mlp_bias=flagged("use_bias", True), tied=True, missing_null="warn",
    ),
    "nemotron": Family(
        norm="layer", gated=False, mlp_bias=flagged("mlp_bias"), missing_null="refuse",
    ),
    "phi": Family(
        norm="layer", norms=1, bias="all", gated=False, mlp_bias=True, qk_norm=_phi_norm,
        extra=lambda config: config.count("vocab_size"),
    ),
    "persimmon": Family(
        norm="layer", bias="all", gated=False, mlp_bias=True,
        qk_norm=picks("qk_layernorm", "layer", "none", True),
        kv_default=lambda config: config.count("num_attention_heads"),
    ),
    "jais2": Family(norm="layer", gated=False, bias=bias_if("attention_bias", "all", True),
                    mlp_bias=flagged("mlp_bias", True)),
}  # fmt: skip
FAMILIES["iquestcoder"] = LLAMA
FAMILIES["granite_swa"] = Family(mlp_bias=flagged("mlp_bias"), sinks=True, pattern=from_first(4))
