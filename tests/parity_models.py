"""The model classes that our counts are proven against, each with a small configuration of its own.

Sizes are chosen so that every width differs from every other one: a head is not hidden size over
heads, KV heads are fewer than query heads, and windows are shorter than the tokens fed.
"""

from __future__ import annotations

from typing import Any

from parity_composites import COMPOSITES
from parity_encoders import ENCODERS
from parity_model import TOKENS, WINDOW, Model
from parity_sources import SOURCES

__all__ = ["MODELS", "TOKENS", "WINDOW", "Model"]

_BASE = {"vocab_size": 500, "hidden_size": 96, "num_hidden_layers": 6, "num_attention_heads": 6,
         "intermediate_size": 176, "max_position_embeddings": 128}  # fmt: skip
_KV = {"num_key_value_heads": 2}
_WIDE = {"head_dim": 24}
_GQA = {**_BASE, **_KV}
_GQA_WIDE = {**_GQA, **_WIDE}
_LOCAL = {**_GQA_WIDE, "sliding_window": WINDOW}
_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
_LOCAL_EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
_ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
           "n_shared_experts": 1}  # fmt: skip
_LATENT = {**_BASE, "num_key_value_heads": 6, "kv_lora_rank": 32, "q_lora_rank": 24,
           "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 20}  # fmt: skip
_GPT = {"vocab_size": 500, "n_embd": 96, "n_layer": 6, "n_head": 6, "n_positions": 128}
_DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
          "linear_value_head_dim": 12}  # fmt: skip
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 24, "mamba_d_state": 16, "mamba_n_groups": 2}
_FIRST_DENSE = {"first_k_dense_replace": 2}
_INDEX = {"index_head_dim": 32, "index_n_heads": 4, "index_topk": 16}
_SMALL_TEXT = {**_GQA_WIDE, "pad_token_id": 0}


def _causal(prefix: str, model_type: str, *parts: dict[str, Any], **more: Any) -> Model:
    config: dict[str, Any] = {}
    for part in parts:
        config |= part
    return Model(
        model_type=model_type, cls=f"{prefix}ForCausalLM", config=config | more,
        only_class={"pad_token_id": 0},
    )  # fmt: skip


_DENSE = [
    _causal("Llama", "llama", _GQA_WIDE, tie_word_embeddings=True, attention_bias=True),
    _causal("Mistral", "mistral", _LOCAL),
    _causal("Ministral", "ministral", _LOCAL),
    _causal("Ministral3", "ministral3", _GQA_WIDE, sliding_window=None),
    _causal("Qwen2", "qwen2", _GQA, use_sliding_window=True, sliding_window=WINDOW,
            max_window_layers=3),
    _causal("Qwen3", "qwen3", _GQA_WIDE),
    _causal("Gemma", "gemma", _GQA_WIDE),
    _causal("Gemma2", "gemma2", _LOCAL),
    _causal("Gemma3", "gemma3_text", _LOCAL, sliding_window_pattern=3),
    _causal("Gemma3n", "gemma3n_text", _LOCAL, num_hidden_layers=12, num_kv_shared_layers=3,
            vocab_size_per_layer_input=500, hidden_size_per_layer_input=8, laurel_rank=4,
            activation_sparsity_pattern=[0.0] * 12),
    _causal("Gemma4", "gemma4_text", _LOCAL, global_head_dim=32, num_kv_shared_layers=2,
            attention_k_eq_v=True, num_global_key_value_heads=3, vocab_size_per_layer_input=500,
            hidden_size_per_layer_input=8, use_double_wide_mlp=True,
            layer_types=["sliding_attention", "full_attention"] * 3),
    _causal("VaultGemma", "vaultgemma", _LOCAL),
    _causal("Phi3", "phi3", _GQA),
    _causal("Phi", "phi", _GQA, qk_layernorm=False),
    _causal("Granite", "granite", _GQA),
    _causal("GraniteSWA", "granite_swa", _LOCAL,
            layer_types=["full_attention", "sliding_attention"] * 3),
    _causal("Olmo", "olmo", _GQA),
    _causal("Olmo2", "olmo2", _GQA),
    _causal("Olmo3", "olmo3", {**_GQA, "sliding_window": WINDOW}),
    _causal("Cohere", "cohere", _GQA, use_qk_norm=True),
    _causal("Cohere2", "cohere2", {**_GQA, "sliding_window": WINDOW}),
    _causal("Helium", "helium", _GQA, head_dim=16),
    _causal("Glm", "glm", _GQA_WIDE, attention_bias=True),
    _causal("Glm4", "glm4", _GQA_WIDE),
    _causal("SmolLM3", "smollm3", _GQA),
    _causal("SeedOss", "seed_oss", _GQA_WIDE),
    _causal("Exaone4", "exaone4", {**_LOCAL, "sliding_window_pattern": 4}),
    _causal("Arcee", "arcee", _GQA),
    _causal("Doge", "doge", _GQA, keep_window_size=64),
    _causal("ModernBertDecoder", "modernbert-decoder", _BASE, local_attention=2 * WINDOW),
    _causal("Ernie4_5", "ernie4_5", _GQA_WIDE, use_bias=True),
    _causal("HunYuanDenseV1", "hunyuan_v1_dense", _GQA_WIDE),
    _causal("Cwm", "cwm", _LOCAL),
    _causal("Apertus", "apertus", _GQA),
    _causal("DiffLlama", "diffllama", _GQA, head_dim=16),
    _causal("NanoChat", "nanochat", _GQA),
    _causal("BitNet", "bitnet", _GQA),
    _causal("StableLm", "stablelm", _GQA, use_qkv_bias=True, qk_layernorm=True),
    _causal("Starcoder2", "starcoder2", {**_GQA, "sliding_window": WINDOW}),
    _causal("Nemotron", "nemotron", _GQA, head_dim=16),
    _causal("Persimmon", "persimmon", _BASE),
    _causal("Jais2", "jais2", _GQA),
    _causal("HyperCLOVAX", "hyperclovax", _GQA),
]  # fmt: skip

_GPT_LIKE = [
    Model(model_type="gpt2", cls="GPT2LMHeadModel", config={**_GPT, "n_inner": 176}),
    _causal("GPTBigCode", "gpt_bigcode", _GPT, n_inner=176),
    Model(model_type="openai-gpt", cls="OpenAIGPTLMHeadModel", config=_GPT, feed=""),
    _causal("GPTNeo", "gpt_neo", vocab_size=500, hidden_size=96, num_layers=6, num_heads=6,
            attention_types=[[["global", "local"], 3]], window_size=WINDOW, intermediate_size=176,
            max_position_embeddings=128),
    _causal("GPTNeoX", "gpt_neox", _BASE, attention_bias=False),
    _causal("GPTNeoXJapanese", "gpt_neox_japanese", vocab_size=500, hidden_size=96,
            num_hidden_layers=6, num_attention_heads=6, intermediate_multiple_size=4),
    _causal("GPTJ", "gptj", _GPT, rotary_dim=8),
    _causal("CodeGen", "codegen", {**_GPT, "n_head": 8}, rotary_dim=8),
    _causal("Bloom", "bloom", vocab_size=500, hidden_size=96, n_layer=6, n_head=6),
    _causal("Falcon", "falcon", vocab_size=500, hidden_size=96, num_hidden_layers=6,
            num_attention_heads=6, num_kv_heads=6, multi_query=True, bias=True),
    _causal("Mpt", "mpt", vocab_size=500, d_model=96, n_layers=6, n_heads=6, max_seq_len=128),
    _causal("OPT", "opt", vocab_size=500, hidden_size=96, num_hidden_layers=6, ffn_dim=176,
            num_attention_heads=6, max_position_embeddings=128, word_embed_proj_dim=32),
    _causal("XGLM", "xglm", vocab_size=500, d_model=96, num_layers=6, ffn_dim=176,
            attention_heads=6, max_position_embeddings=128),
    _causal("BioGpt", "biogpt", _BASE),
    Model(model_type="ctrl", cls="CTRLLMHeadModel",
          config={"vocab_size": 500, "n_embd": 96, "n_layer": 6, "n_head": 6, "dff": 176,
                  "n_positions": 128}),
]  # fmt: skip

_MIXTURES = [
    _causal("JetMoe", "jetmoe", {k: v for k, v in _BASE.items() if k != "num_attention_heads"},
            _LOCAL_EXPERTS, num_key_value_heads=3, kv_channels=24),
    _causal("Mixtral", "mixtral", _LOCAL, _LOCAL_EXPERTS),
    _causal("Phimoe", "phimoe", _GQA, _LOCAL_EXPERTS, sliding_window=None, lm_head_bias=True),
    _causal("Qwen2Moe", "qwen2_moe", _GQA, _EXPERTS, shared_expert_intermediate_size=64,
            decoder_sparse_step=2),
    _causal("Qwen3Moe", "qwen3_moe", _GQA_WIDE, _EXPERTS, mlp_only_layers=[1]),
    _causal("Olmoe", "olmoe", _GQA, num_experts=8, num_experts_per_tok=2),
    _causal("FlexOlmo", "flex_olmo", _GQA, num_experts=8, num_experts_per_tok=2),
    _causal("GraniteMoe", "granitemoe", _GQA, _LOCAL_EXPERTS),
    _causal("GraniteMoeShared", "granitemoeshared", _GQA, _LOCAL_EXPERTS,
            shared_intermediate_size=40),
    _causal("GptOss", "gpt_oss", _LOCAL, _LOCAL_EXPERTS),
    _causal("Llama4", "llama4_text", _GQA_WIDE, _LOCAL_EXPERTS, intermediate_size_mlp=200,
            interleave_moe_layer_step=2, attention_chunk_size=WINDOW),
    _causal("Glm4Moe", "glm4_moe", _GQA_WIDE, _ROUTED, _FIRST_DENSE, use_qk_norm=True),
    _causal("MiniMaxM2", "minimax_m2", _GQA_WIDE, _LOCAL_EXPERTS),
    _causal("HunYuanMoEV1", "hunyuan_v1_moe", _GQA_WIDE, num_experts=8, moe_topk=2),
    _causal("Ernie4_5_Moe", "ernie4_5_moe", _GQA, moe_num_experts=8, moe_k=2,
            moe_intermediate_size=48, moe_num_shared_experts=2, moe_layer_start_index=2),
    _causal("Dots1", "dots1", _GQA_WIDE, _ROUTED, _FIRST_DENSE, sliding_window=None),
    _causal("Afmoe", "afmoe", _LOCAL, num_experts=8, num_experts_per_tok=2, num_shared_experts=1,
            moe_intermediate_size=48, num_dense_layers=2),
    _causal("ExaoneMoe", "exaone_moe", _LOCAL, num_experts=8, num_experts_per_tok=2,
            num_shared_experts=1, moe_intermediate_size=48, first_k_dense_replace=1),
    _causal("SolarOpen", "solar_open", _GQA_WIDE, _ROUTED),
    _causal("Cohere2Moe", "cohere2_moe", _LOCAL, num_experts=8, num_experts_per_tok=2),
    _causal("MiMoV2Flash", "mimo_v2_flash", _LOCAL, n_routed_experts=8, num_experts_per_tok=2,
            moe_intermediate_size=48, num_attention_heads=8, v_head_dim=20),
    _causal("Laguna", "laguna", _LOCAL, _EXPERTS, shared_expert_intermediate_size=40,
            layer_types=["full_attention", "sliding_attention"] * 3),
]  # fmt: skip

_LATENT_ATTENTION = [
    _causal("DeepseekV2", "deepseek_v2", _LATENT, _ROUTED, _FIRST_DENSE),
    _causal("DeepseekV3", "deepseek_v3", _LATENT, _ROUTED, _FIRST_DENSE, n_group=2, topk_group=1),
    _causal("DeepseekV32", "deepseek_v32", _LATENT, _ROUTED, _INDEX, n_group=2, topk_group=1,
            first_k_dense_replace=2),
    _causal("GlmMoeDsa", "glm_moe_dsa", _LATENT, _ROUTED, _INDEX, first_k_dense_replace=1),
    _causal("Glm4MoeLite", "glm4_moe_lite", _LATENT, _ROUTED),
    _causal("MiniCPM3", "minicpm3", _LATENT),
    _causal("Youtu", "youtu", _LATENT),
    _causal("LongcatFlash", "longcat_flash",
            {k: v for k, v in _LATENT.items() if k not in ("intermediate_size",
                                                           "num_hidden_layers")},
            num_layers=3, ffn_hidden_size=176, expert_ffn_hidden_size=48, n_routed_experts=8,
            moe_topk=2, zero_expert_num=0, head_dim=8),
    _causal("DeepseekV4", "deepseek_v4", vocab_size=500, hidden_size=96, num_hidden_layers=6,
            num_attention_heads=6, num_key_value_heads=1, head_dim=32, q_lora_rank=24,
            o_lora_rank=16, o_groups=2, n_routed_experts=8, num_experts_per_tok=2,
            moe_intermediate_size=48, sliding_window=WINDOW, index_head_dim=32, index_n_heads=4,
            index_topk=4, compress_ratios=[0, 4, 128, 4, 4, 0], max_position_embeddings=128,
            compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}),
]  # fmt: skip

_HYBRIDS = [
    _causal("Qwen3Next", "qwen3_next", _GQA_WIDE, _EXPERTS, _DELTA,
            shared_expert_intermediate_size=40),
    _causal("Qwen3_5", "qwen3_5_text", _GQA_WIDE, _DELTA),
    _causal("Qwen3_5Moe", "qwen3_5_moe_text", _GQA_WIDE, _EXPERTS, _DELTA,
            shared_expert_intermediate_size=40),
    _causal("KimiLinear", "kimi_linear", {**_LATENT, "q_lora_rank": None}, _ROUTED,
            num_local_experts=8, linear_num_heads=4, linear_head_dim=16),
    _causal("MiniMax", "minimax", _GQA_WIDE, _LOCAL_EXPERTS),
    _causal("Lfm2", "lfm2", _GQA, full_attn_idxs=[1, 4], block_multiple_of=8),
    _causal("Lfm2Moe", "lfm2_moe", _GQA, _EXPERTS, num_dense_layers=1,
            layer_types=["conv", "full_attention"] * 3),
    _causal("RecurrentGemma", "recurrent_gemma", _GQA, attention_window_size=WINDOW),
    _causal("OlmoHybrid", "olmo_hybrid", _GQA),
    _causal("Bamba", "bamba", _GQA, _MAMBA, attn_layer_indices=[1, 4]),
    _causal("Jamba", "jamba", _GQA, attn_layer_period=3, attn_layer_offset=1, mamba_d_state=8,
            num_experts=4, num_experts_per_tok=2),
    _causal("GraniteMoeHybrid", "granitemoehybrid", _GQA, _MAMBA, _LOCAL_EXPERTS,
            shared_intermediate_size=40, layer_types=["mamba", "attention", "mamba"] * 2),
    _causal("FalconH1", "falcon_h1", _GQA, _MAMBA, mamba_d_ssm=192),
    _causal("NemotronH", "nemotron_h", {k: v for k, v in _GQA_WIDE.items()
                                        if k != "num_hidden_layers"},
            hybrid_override_pattern="M*-EM*", mamba_num_heads=8, mamba_head_dim=16,
            ssm_state_size=16, n_groups=2, n_routed_experts=8, num_experts_per_tok=2,
            moe_intermediate_size=48, moe_shared_expert_intermediate_size=40, moe_latent_size=32),
    _causal("Zamba", "zamba", {**_BASE, "num_key_value_heads": 6, "num_hidden_layers": 9},
            mamba_d_state=8, n_mamba_heads=2),
    _causal("Zamba2", "zamba2", _GQA, mamba_d_state=16, n_mamba_heads=8, adapter_rank=8,
            layers_block_type=["mamba", "mamba", "hybrid", "mamba", "hybrid", "mamba"]),
    _causal("Mamba", "mamba", vocab_size=500, hidden_size=96, num_hidden_layers=4, state_size=8),
    _causal("FalconMamba", "falcon_mamba", vocab_size=500, hidden_size=96, num_hidden_layers=4,
            state_size=8),
    _causal("Mamba2", "mamba2", vocab_size=500, hidden_size=96, num_hidden_layers=4, num_heads=8,
            head_dim=24, state_size=16, n_groups=2),
]  # fmt: skip

MODELS = (*_DENSE, *_GPT_LIKE, *_MIXTURES, *_LATENT_ATTENTION, *_HYBRIDS, *SOURCES, *ENCODERS,
          *COMPOSITES)  # fmt: skip
