"""Text models inside composite files: the same decoders under the names their towers give them."""

from __future__ import annotations

from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.families.gemma import FAMILIES as GEMMA
from configurator.interop.huggingface.families.latent_attention import FAMILIES as LATENT
from configurator.interop.huggingface.families.llama_like import FAMILIES as LLAMA
from configurator.interop.huggingface.families.mixtures import FAMILIES as MIXTURES
from configurator.interop.huggingface.family import Family, Mixture
from configurator.interop.huggingface.rules import bias_if
from configurator.interop.huggingface.scopes import FULL

__all__ = ["FAMILIES"]


def _full(config: Config, n: int) -> list[str]:
    return [FULL] * n


_GLM4V = Family(bias="qkv", norms=4)
_GLM4V_MOE = Family(bias=bias_if("attention_bias", "qkv", True), mixture=Mixture(shared="count"))

FAMILIES = {
    "qwen2_vl_text": LLAMA["qwen2"],
    "qwen2_5_vl_text": LLAMA["qwen2"],
    "qwen2_5_omni_text": LLAMA["qwen2"],
    "qwen3_vl_text": Family(qk_norm="head", pattern=_full),
    "qwen3_vl_moe_text": MIXTURES["qwen3_moe"],
    "qwen3_omni_moe_text": MIXTURES["qwen3_moe"],
    "glm4v_text": _GLM4V,
    "glm4v_moe_text": _GLM4V_MOE,
    "kimi_k25_text": LATENT["deepseek_v3"],
    "emu3_text_model": LLAMA["llama"],
    "paddleocr_vl_text": LLAMA["ernie4_5"],
    "t5gemma_module": GEMMA["gemma2"],
}
