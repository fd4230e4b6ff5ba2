"""Encoder-decoders that our counts are proven against: two caches in every decoder layer."""

from __future__ import annotations

from typing import Any

from parity_model import WINDOW, Model

__all__ = ["SOURCES"]

_BART: dict[str, Any] = {"vocab_size": 500, "d_model": 96, "encoder_layers": 3, "decoder_layers": 4,
         "encoder_attention_heads": 4, "decoder_attention_heads": 6, "encoder_ffn_dim": 112,
         "decoder_ffn_dim": 176, "max_position_embeddings": 128}  # fmt: skip
_T5 = {"vocab_size": 500, "d_model": 96, "d_kv": 20, "d_ff": 176, "num_layers": 3,
       "num_decoder_layers": 4, "num_heads": 6}  # fmt: skip
_GEMMA = {"vocab_size": 500, "hidden_size": 96, "intermediate_size": 176, "num_hidden_layers": 6,
          "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 24,
          "sliding_window": WINDOW}  # fmt: skip
_EYE = {"hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 3,
        "num_attention_heads": 4, "image_size": 32, "patch_size": 8}  # fmt: skip

SOURCES = [
    Model(model_type="t5", cls="T5ForConditionalGeneration", config=_T5, feed="source"),
    Model(model_type="mt5", cls="MT5ForConditionalGeneration", feed="source",
          config={**_T5, "feed_forward_proj": "gated-gelu"}),
    Model(model_type="umt5", cls="UMT5ForConditionalGeneration", config=_T5, feed="source"),
    Model(model_type="bart", cls="BartForConditionalGeneration", config=_BART, feed="source"),
    Model(model_type="mbart", cls="MBartForConditionalGeneration", config=_BART, feed="source"),
    Model(model_type="plbart", cls="PLBartForConditionalGeneration", config=_BART, feed="source"),
    Model(model_type="pegasus", cls="PegasusForConditionalGeneration", config=_BART,
          feed="source"),
    Model(model_type="marian", cls="MarianMTModel", config=_BART, feed="source",
          only_class={"pad_token_id": 0, "decoder_start_token_id": 0}),
    Model(model_type="m2m_100", cls="M2M100ForConditionalGeneration", config=_BART,
          feed="source"),
    Model(model_type="blenderbot", cls="BlenderbotForConditionalGeneration", config=_BART,
          feed="source"),
    Model(model_type="blenderbot-small", cls="BlenderbotSmallForConditionalGeneration",
          config=_BART, feed="source"),
    Model(model_type="whisper", cls="WhisperForConditionalGeneration", feed="sound",
          config={**{k: v for k, v in _BART.items() if k != "max_position_embeddings"},
                  "num_mel_bins": 16, "max_source_positions": 30, "max_target_positions": 64},
          only_class={"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                      "decoder_start_token_id": 1, "suppress_tokens": None,
                      "begin_suppress_tokens": None}),
    Model(model_type="mvp", cls="MvpForConditionalGeneration", config=_BART, feed="source"),
    Model(model_type="fsmt", cls="FSMTForConditionalGeneration", feed="source",
          config={**{k: v for k, v in _BART.items() if k != "vocab_size"},
                  "src_vocab_size": 500, "tgt_vocab_size": 520, "langs": ["en", "de"]}),
    Model(model_type="led", cls="LEDForConditionalGeneration", feed="source",
          config={**{k: v for k, v in _BART.items() if k != "max_position_embeddings"},
                  "max_encoder_position_embeddings": 128, "max_decoder_position_embeddings": 64,
                  "attention_window": 8}),
    Model(model_type="bigbird_pegasus", cls="BigBirdPegasusForConditionalGeneration",
          config={**_BART, "attention_type": "original_full"}, feed="source"),
    Model(model_type="pegasus_x", cls="PegasusXForConditionalGeneration", feed="source",
          config={**_BART, "block_size": 8, "num_global_tokens": 4}),
    Model(model_type="longt5", cls="LongT5ForConditionalGeneration", feed="source",
          config={**_T5, "encoder_attention_type": "transient-global", "local_radius": 7}),
    Model(model_type="switch_transformers", cls="SwitchTransformersForConditionalGeneration",
          config={**_T5, "num_experts": 4, "num_sparse_encoder_layers": 1,
                  "num_sparse_decoder_layers": 2}, feed=""),
    Model(model_type="nllb-moe", cls="NllbMoeForConditionalGeneration", feed="source",
          config={**_BART, "num_experts": 4, "encoder_sparse_step": 2,
                  "decoder_sparse_step": 4}),
    Model(model_type="speech_to_text", cls="Speech2TextForConditionalGeneration", feed="",
          config={**{k: v for k, v in _BART.items() if k != "max_position_embeddings"},
                  "conv_channels": 40, "input_feat_per_channel": 12}),
    Model(model_type="t5gemma", cls="T5GemmaForConditionalGeneration", feed="source",
          config={"encoder": _GEMMA, "decoder": {**_GEMMA, "hidden_size": 48,
                                                 "num_hidden_layers": 4}}),
    Model(model_type="t5gemma2", cls="T5Gemma2ForConditionalGeneration", feed="source",
          config={"encoder": {"text_config": _GEMMA, "vision_config": _EYE}, "decoder": _GEMMA}),
]  # fmt: skip
