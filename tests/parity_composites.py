"""Composite models that our counts are proven against: a text model, a tower, what joins them."""

from __future__ import annotations

from typing import Any

from parity_model import WINDOW, Model

__all__ = ["COMPOSITES"]

_TEXT: dict[str, Any] = {
    "vocab_size": 500, "hidden_size": 96, "num_hidden_layers": 6, "num_attention_heads": 6,
    "intermediate_size": 176, "max_position_embeddings": 128,
}  # fmt: skip
_GQA = {**_TEXT, "num_key_value_heads": 2}
_GQA_WIDE = {**_GQA, "head_dim": 24}
_LOCAL = {**_GQA_WIDE, "sliding_window": WINDOW}
_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
_DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
          "linear_value_head_dim": 12}  # fmt: skip
_SMALL_TEXT = {**_GQA_WIDE, "pad_token_id": 0}
_SIGLIP = {"hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 3,
           "num_attention_heads": 4, "image_size": 32, "patch_size": 8}  # fmt: skip
_QWEN_EYE = {"depth": 3, "num_heads": 4, "out_hidden_size": 96}


def _composite(
    prefix: str, model_type: str, text: dict[str, Any], tower: dict[str, Any],
    key: str = "vision_config", **more: Any,
) -> Model:  # fmt: skip
    return Model(
        model_type=model_type,
        cls=f"{prefix}ForConditionalGeneration",
        config={"text_config": text, key: tower, **more},
        feed="",
    )


COMPOSITES = [
    _composite("Gemma3", "gemma3", {**_LOCAL, "pad_token_id": 0}, _SIGLIP),
    _composite("PaliGemma", "paligemma", _SMALL_TEXT, _SIGLIP, projection_dim=72),
    _composite("Llava", "llava", {**_SMALL_TEXT, "model_type": "llama"},
               {**_SIGLIP, "model_type": "clip_vision_model"}),
    _composite("LlavaNext", "llava_next", {**_LOCAL, "model_type": "mistral", "pad_token_id": 0},
               {**_SIGLIP, "model_type": "clip_vision_model"}),
    _composite("LlavaOnevision", "llava_onevision", {**_GQA, "model_type": "qwen2"},
               {**_SIGLIP, "model_type": "siglip_vision_model"}),
    _composite("Mistral3", "mistral3", {**_SMALL_TEXT, "model_type": "mistral"},
               {**_SIGLIP, "model_type": "pixtral", "head_dim": 16}),
    _composite("InternVL", "internvl", {**_GQA, "model_type": "qwen2"}, _SIGLIP),
    _composite("Llama4", "llama4",
               {**_GQA_WIDE, "pad_token_id": 0, "num_local_experts": 8, "num_experts_per_tok": 2,
                "intermediate_size_mlp": 200, "attention_chunk_size": WINDOW},
               {**_SIGLIP, "vision_output_dim": 72, "projector_input_dim": 72,
                "projector_output_dim": 72}),
    _composite("Idefics3", "idefics3", {**_SMALL_TEXT, "model_type": "llama"}, _SIGLIP),
    _composite("SmolVLM", "smolvlm", {**_SMALL_TEXT, "model_type": "llama"}, _SIGLIP),
    _composite("Qwen2VL", "qwen2_vl", _GQA,
               {"depth": 3, "embed_dim": 64, "hidden_size": 96, "num_heads": 4}),
    _composite("Qwen2_5_VL", "qwen2_5_vl", _GQA,
               {**_QWEN_EYE, "hidden_size": 64, "intermediate_size": 80}),
    _composite("Qwen3VL", "qwen3_vl", _GQA_WIDE,
               {**_QWEN_EYE, "hidden_size": 64, "intermediate_size": 80,
                "deepstack_visual_indexes": [0, 2]}),
    _composite("Qwen3VLMoe", "qwen3_vl_moe", {**_GQA_WIDE, **_EXPERTS},
               {**_QWEN_EYE, "hidden_size": 64, "intermediate_size": 80}),
    _composite("Qwen3_5", "qwen3_5", {**_GQA_WIDE, **_DELTA},
               {**_QWEN_EYE, "hidden_size": 64, "intermediate_size": 80}),
    _composite("Glm4v", "glm4v", _GQA, {"depth": 3, "hidden_size": 64, "num_heads": 4,
                                        "out_hidden_size": 96, "intermediate_size": 80}),
    _composite("Mllama", "mllama", {**_GQA, "cross_attention_layers": [1, 4], "pad_token_id": 0},
               {"hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 3,
                "num_global_layers": 2, "attention_heads": 4, "image_size": 28,
                "max_num_tiles": 2, "vision_output_dim": 192,
                "intermediate_layers_indices": [0, 2],
                "supported_aspect_ratios": [[1, 1], [1, 2]]}),
    _composite("Qwen2Audio", "qwen2_audio", {**_GQA, "model_type": "qwen2"},
               {"d_model": 64, "encoder_layers": 3, "encoder_attention_heads": 4,
                "encoder_ffn_dim": 80, "num_mel_bins": 16, "max_source_positions": 30},
               key="audio_config"),
    _composite("Voxtral", "voxtral", {**_SMALL_TEXT, "model_type": "llama"},
               {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
                "intermediate_size": 80, "num_mel_bins": 16, "max_source_positions": 30},
               key="audio_config"),
    _composite("Cohere2Vision", "cohere2_vision", {**_GQA, "pad_token_id": 0}, _SIGLIP,
               alignment_intermediate_size=128),
    _composite("AyaVision", "aya_vision", {**_GQA, "pad_token_id": 0}, _SIGLIP,
               alignment_intermediate_size=128),
    _composite("Lfm2Vl", "lfm2_vl", {**_GQA, "pad_token_id": 0}, {**_SIGLIP, "num_patches": 16},
               projector_hidden_size=112),
    _composite("Idefics2", "idefics2", {**_LOCAL, "model_type": "mistral", "pad_token_id": 0},
               _SIGLIP, perceiver_config={
                   "hidden_size": 96, "resampler_n_heads": 2, "resampler_head_dim": 16,
                   "num_key_value_heads": 1, "resampler_depth": 2, "resampler_n_latents": 8}),
    _composite("VipLlava", "vipllava", _SMALL_TEXT, _SIGLIP),
    _composite("VideoLlava", "video_llava", _SMALL_TEXT, _SIGLIP),
    Model(model_type="fuyu", cls="FuyuForCausalLM", feed="",
          config={"text_config": {**_TEXT, "pad_token_id": 0}, "patch_size": 10}),
]  # fmt: skip
