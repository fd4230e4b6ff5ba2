"""Published models as their files state them (the keys that matter), with published figures.

``params`` is the integer that the publisher or keras-hub's presets state (exact), or a count that
was made by hand from the shape; ``growth`` the values that one more token adds once windows are
full, as model cards, papers and serving engines give them. Sources are those of the catalog.
"""

from __future__ import annotations

from typing import Any

from published_makers import bert, bloom, gemma3, gpt2, llama, neox, t5, whisper

__all__ = ["PUBLISHED"]


_MLA = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128}  # fmt: skip
_V3 = {"moe_intermediate_size": 2048, "n_shared_experts": 1, "num_experts_per_tok": 8,
       "tie_word_embeddings": False}  # fmt: skip
_LAYERS_OF_MINIMAX = [int(i % 8 == 7) for i in range(80)]
_V4_FLASH = [0, 0] + [4 if i % 2 == 0 else 128 for i in range(41)]
_TP = "tie_word_embeddings"

# name: (config, parameters, values that one more token adds once windows are full)
PUBLISHED: dict[str, tuple[dict[str, Any], int | None, int | None]] = {
    "gpt2": (gpt2(12, 768, 12), 124_439_808, 18_432),
    "gpt2-xl": (gpt2(48, 1600, 25), 1_557_611_200, 153_600),
    "pythia-70m": (neox(6, 512, 8, 50304), 70_426_624, 6_144),
    "pythia-12b": (neox(36, 5120, 40, 50688), 11_846_072_320, 368_640),
    "gpt-neox-20b": (neox(44, 6144, 64, 50432), 20_554_567_680, 540_672),
    "bloom-560m": (bloom(24, 1024, 16), 559_214_592, 49_152),
    "bloom-176b": (bloom(70, 14336, 112), 176_247_271_424, 2_007_040),
    "llama-2-7b": (llama("llama", 32, 4096, 11008, 32000, 32), 6_738_415_616, 262_144),
    "llama-3-8b": (llama("llama", 32, 4096, 14336, 128256, 32, 8), 8_030_261_248, 65_536),
    "mistral-7b-v0.3": (
        llama("mistral", 32, 4096, 14336, 32768, 32, 8, sliding_window=None),
        7_248_023_552, 65_536,
    ),
    "mixtral-8x7b": (
        llama("mixtral", 32, 4096, 14336, 32000, 32, 8, num_local_experts=8,
               num_experts_per_tok=2, sliding_window=None),
        46_702_792_704, 65_536,
    ),
    "gemma-2b": (llama("gemma", 18, 2048, 16384, 256000, 8, 1, head_dim=256), 2_506_172_416,
                 9_216),
    "gemma-7b": (llama("gemma", 28, 3072, 24576, 256000, 16, 16, head_dim=256), 8_537_680_896,
                 229_376),
    "gemma-2-27b": (
        llama("gemma2", 46, 4608, 36864, 256000, 32, 16, head_dim=128, sliding_window=4096),
        27_227_128_320, 94_208,
    ),
    "gemma-3-270m": (gemma3(18, 640, 2048, 4, 1, 256, 512), 268_098_176, 1_536),
    "gemma-3-4b": (gemma3(34, 2560, 10240, 8, 4, 256, 1024), 3_880_099_328, 10_240),
    "gemma-3-27b": (gemma3(62, 5376, 21504, 32, 16, 128, 1024), 27_009_002_240, 40_960),
    "qwen1.5-moe": (
        llama("qwen2_moe", 24, 2048, 5632, 151936, 16, 16, num_experts=60, num_experts_per_tok=4,
               moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
               decoder_sparse_step=1),
        14_315_784_192, 98_304,
    ),
    "qwen2.5-0.5b": (
        llama("qwen2", 24, 896, 4864, 151936, 14, 2, tie_word_embeddings=True), 494_032_768, 6_144
    ),
    "qwen2.5-72b": (llama("qwen2", 80, 8192, 29568, 152064, 64, 8), 72_706_203_648, 163_840),
    "qwen3-0.6b": (
        llama("qwen3", 28, 1024, 3072, 151936, 16, 8, head_dim=128, tie_word_embeddings=True),
        596_049_920, 57_344,
    ),
    "qwen3-32b": (
        llama("qwen3", 64, 5120, 25600, 151936, 64, 8, head_dim=128), 32_762_123_264, 131_072
    ),
    "qwen3-235b-a22b": (
        llama("qwen3_moe", 94, 4096, 12288, 151936, 64, 4, head_dim=128, num_experts=128,
               num_experts_per_tok=8, moe_intermediate_size=1536, tie_word_embeddings=False),
        235_093_634_560, 96_256,
    ),
    "gpt-oss-120b": (
        llama("gpt_oss", 36, 2880, 2880, 201088, 64, 8, head_dim=64, sliding_window=128,
               num_local_experts=128, num_experts_per_tok=4, tie_word_embeddings=False),
        116_829_156_672, 18_432,
    ),
    "phi-3-mini": (llama("phi3", 32, 3072, 8192, 32064, 32, 32, sliding_window=2047),
                   3_821_079_552, 0),
    "stablelm-3b-4e1t": (llama("stablelm", 32, 2560, 6912, 50304, 32, 32), 2_795_443_200,
                         163_840),
    "baichuan-7b": (llama("baichuan", 32, 4096, 11008, 64000, 32), 7_000_559_616, 262_144),
    "baichuan-13b": (llama("baichuan", 40, 5120, 13696, 64000, 40), 13_264_901_120, 409_600),
    "bert-base": (bert(12, 768, 12), 109_482_240, 0),
    "bert-large": (bert(24, 1024, 16), 335_141_888, 0),
    "roberta-base": (
        bert(12, 768, 12, model_type="roberta", vocab_size=50265, type_vocab_size=1,
              max_position_embeddings=514, architectures=["RobertaForMaskedLM"]),
        124_697_433, 0,  # with the language head
    ),
    "distilbert": (
        {"model_type": "distilbert", "architectures": ["DistilBertModel"], "dim": 768,
         "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522,
         "max_position_embeddings": 512},
        66_362_880, 0,
    ),
    "t5-small": (t5(6, 512, 2048, 8, 64, False), 60_506_624, 6_144),
    "t5-large": (t5(24, 1024, 4096, 16, 64, False), 737_668_096, 49_152),
    "t5-v1.1-base": (t5(12, 768, 2048, 12, 64, True), 247_577_856, 18_432),
    "t5-v1.1-xxl": (t5(24, 4096, 10240, 64, 64, True), 11_135_332_352, 196_608),
    "whisper-tiny": (whisper(4, 384, 6), 37_760_640, 3_072),
    "whisper-large": (whisper(32, 1280, 20), 1_543_304_960, 81_920),
    # counts made from the shape, where the publisher rounds
    "deepseek-moe-16b": (
        llama("deepseek", 28, 2048, 10944, 102400, 16, 16, n_routed_experts=64,
               n_shared_experts=2, num_experts_per_tok=6, moe_intermediate_size=1408,
               first_k_dense_replace=1, moe_layer_freq=1, tie_word_embeddings=False),
        16_375_728_128, 114_688,
    ),
    "minicpm-2b": (llama("minicpm", 40, 2304, 5760, 122753, 36, 36), 2_724_880_896, 184_320),
    "minicpm-moe-8x2b": (
        llama("minicpm", 40, 2304, 5760, 122753, 36, 36, num_experts=8, num_experts_per_tok=2),
        13_873_291_776, 184_320,
    ),
    "minicpm3-4b": (
        llama("minicpm3", 62, 2560, 6400, 73448, 40, 40, q_lora_rank=768, kv_lora_rank=256,
               qk_nope_head_dim=64, qk_rope_head_dim=32),
        4_073_875_968, 17_856,
    ),
    "chatglm2-6b": (
        {"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "ffn_hidden_size": 13696,
         "num_attention_heads": 32, "multi_query_attention": True, "multi_query_group_num": 2,
         "kv_channels": 128, "padded_vocab_size": 65024, "add_qkv_bias": True,
         "add_bias_linear": False, "seq_length": 32768, "architectures": ["ChatGLMModel"]},
        6_243_584_000, 14_336,
    ),
    "qwen-7b": (
        {"model_type": "qwen", "num_hidden_layers": 32, "hidden_size": 4096, "kv_channels": 128,
         "intermediate_size": 22016, "num_attention_heads": 32, "vocab_size": 151936,
         "no_bias": True, "tie_word_embeddings": False},
        7_721_324_544, 262_144,
    ),
    "internlm-7b": (llama("internlm", 32, 4096, 11008, 103168, 32, bias=True), 7_321_948_160,
                    262_144),
    "internlm-20b": (llama("internlm", 60, 5120, 13824, 103168, 40, bias=False), 20_088_714_240,
                     614_400),
    "internlm2-7b": (llama("internlm2", 32, 4096, 14336, 92544, 32, 8, bias=False),
                     7_737_708_544, 65_536),
    "molmo-7b-d": (
        llama("molmo", 28, 3584, 37888, 152064, 28, 4, qkv_bias=True, tie_word_embeddings=False),
        7_615_616_512, 28_672,
    ),
    "orion-14b": (llama("orion", 40, 5120, 15360, 84608, 40, 40), 14_498_703_360, 409_600),
    "phi-3-small": (
        {"model_type": "phi3small", "num_hidden_layers": 32, "hidden_size": 4096,
         "ff_intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 100352},
        7_392_272_384, 65_536,
    ),
    "arctic-480b": (
        llama("arctic", 35, 7168, 4864, 32000, 56, 8, num_local_experts=128,
               num_experts_per_tok=2, use_residual=True),
        None, 71_680,
    ),
    "grok-1": (
        llama("grok-1", 64, 6144, 32768, 131072, 48, 8, num_experts=8, num_experts_per_tok=2),
        315_684_820_992, 131_072,
    ),
    "hunyuan-large": (
        llama("hunyuan", 64, 6400, 18304, 128512, 80, 8, use_cla=True, cla_share_factor=2,
               num_experts=16, moe_topk=[1] * 64, num_shared_expert=[1] * 64, use_qk_norm=True,
               attention_bias=False, tie_word_embeddings=True),
        None, 40_960,
    ),
    "llama-4-scout": (
        llama("llama4_text", 48, 5120, 8192, 202048, 40, 8, head_dim=128,
               intermediate_size_mlp=16384, num_local_experts=16, num_experts_per_tok=1,
               interleave_moe_layer_step=1, attention_chunk_size=8192),
        107_769_861_120, 24_576,
    ),
    "llama-4-maverick": (
        llama("llama4_text", 48, 5120, 8192, 202048, 40, 8, head_dim=128,
               intermediate_size_mlp=16384, num_local_experts=128, num_experts_per_tok=1,
               interleave_moe_layer_step=2, attention_chunk_size=8192),
        400_711_848_960, 24_576,
    ),
    "command-r7b": (
        llama("cohere2", 32, 4096, 14336, 256000, 32, 8, sliding_window=4096,
               use_embedding_sharing=True),
        8_028_033_024, 16_384,
    ),
    "olmo-3-7b": (
        llama("olmo3", 32, 4096, 11008, 100278, 32, 32, sliding_window=4096), 7_298_011_136,
        65_536,
    ),
    "kimi-k2": (
        llama("kimi_k2", 61, 7168, 18432, 163840, 64, 64, n_routed_experts=384,
               first_k_dense_replace=1, **_MLA, **_V3),
        1_026_408_209_408, 35_136,  # router corrections are buffers
    ),
    "deepseek-v3": (
        llama("deepseek_v3", 61, 7168, 18432, 129280, 128, 128, n_routed_experts=256,
               first_k_dense_replace=3, **_MLA, **_V3),
        671_026_404_352, 35_136,
    ),
    "deepseek-v3.2": (  # an index key of 128 beside each latent
        llama("deepseek_v32", 61, 7168, 18432, 129280, 128, 128, n_routed_experts=256,
               first_k_dense_replace=3, index_head_dim=128, index_n_heads=64, **_MLA, **_V3),
        671_877_929_216, 35_136 + 61 * 128,
    ),
    "longcat-flash": (
        {"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144,
         "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "vocab_size": 131072,
         "num_attention_heads": 64, "n_routed_experts": 512, "zero_expert_num": 256,
         "moe_topk": 12, **_MLA},
        None, 32_256,
    ),
    "deepseek-v4-flash": (
        llama("deepseek_v4", 43, 4096, 2048, 129280, 64, 1, head_dim=512, q_lora_rank=1024,
               o_lora_rank=1024, o_groups=8, n_routed_experts=256, n_shared_experts=1,
               num_experts_per_tok=6, moe_intermediate_size=2048, sliding_window=128,
               compress_ratios=[*_V4_FLASH, 0], qk_rope_head_dim=64),
        None, 3_440,
    ),
    "dbrx": (
        {"model_type": "dbrx", "n_layers": 40, "d_model": 6144, "n_heads": 48,
         "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "rope_theta": 500000},
         "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}},
        131_596_523_520, 81_920,
    ),
    "mpt-30b": (
        {"model_type": "mpt", "n_layers": 48, "d_model": 7168, "n_heads": 64,
         "vocab_size": 50432, "attn_config": {"alibi": True}},
        29_957_200_896, 688_128,
    ),
    "replit-code-v1.5-3b": (
        {"model_type": "mpt", "n_layers": 32, "d_model": 3072, "n_heads": 24, "vocab_size": 32768,
         "attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8}},
        3_322_088_448, 65_536,
    ),
    "mimo-v2-flash": (
        llama("mimo_v2_flash", 48, 4096, 16384, 152576, 64, 4, head_dim=192, v_head_dim=128,
               swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
               sliding_window=128, moe_intermediate_size=2048, n_routed_experts=256,
               num_experts_per_tok=8, moe_layer_freq=[0] + [1] * 47,
               hybrid_layer_pattern=[int(not (i == 0 or i % 6 == 5)) for i in range(48)]),
        None, 11_520,
    ),
    "step-3": (
        {"model_type": "step3_text", "num_hidden_layers": 61, "hidden_size": 7168,
         "intermediate_size": 18432, "num_attention_heads": 64, "num_attention_groups": 1,
         "head_dim": 256, "share_q_dim": 2048, "vocab_size": 128815, "moe_num_experts": 48,
         "moe_top_k": 3, "moe_intermediate_size": 5120, "share_expert_dim": 5120,
         "moe_layers_enum": ",".join(map(str, range(4, 60)))},
        None, 31_232,
    ),
    "gemma-3n-e2b": (
        llama("gemma3n_text", 30, 2048, 8192, 262400, 8, 2, head_dim=256, sliding_window=512,
               num_kv_shared_layers=10),
        None, 4_096,
    ),
    "gemma-3n-e4b": (
        llama("gemma3n_text", 35, 2048, 16384, 262400, 8, 2, head_dim=256, sliding_window=512,
               num_kv_shared_layers=15),
        None, 4_096,
    ),
    "gemma-4-e2b": (
        llama("gemma4_text", 35, 1536, 6144, 262144, 8, 1, head_dim=256, sliding_window=512,
               num_kv_shared_layers=20, global_head_dim=512,
               layer_types=["full_attention" if i % 5 == 4 else "sliding_attention"
                            for i in range(35)]),
        None, 3_072,
    ),
    "gemma-4-31b": (
        llama("gemma4_text", 60, 5376, 21504, 262144, 32, 16, head_dim=256, sliding_window=1024,
               global_head_dim=512, num_global_key_value_heads=4, attention_k_eq_v=True,
               hidden_size_per_layer_input=0),
        None, 40_960,
    ),
    "zamba2-2.7b": (
        {"model_type": "zamba2", "num_hidden_layers": 54, "hidden_size": 2560,
         "num_attention_heads": 32, "vocab_size": 32000},
        None, 92_160,
    ),
    "recurrentgemma-2b": (
        llama("recurrent_gemma", 26, 2560, 15360, 256000, 10, 1, attention_window_size=2048),
        None, 0,
    ),
    "minimax-text-01": (
        llama("minimax_text_01", 80, 6144, 9216, 200064, 64, 8, head_dim=128,
               num_local_experts=32, num_experts_per_tok=2, attn_type_list=_LAYERS_OF_MINIMAX),
        None, 20_480,
    ),
    "kimi-linear-48b-a3b": (
        llama("kimi_linear", 27, 2304, 9216, 163840, 32, 32, kv_lora_rank=512, q_lora_rank=None,
               qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, num_experts=256,
               num_experts_per_token=8, num_shared_experts=1, moe_intermediate_size=1024,
               first_k_dense_replace=1,
               linear_attn_config={"full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                                   "kda_layers": [], "head_dim": 128, "num_heads": 32,
                                   "short_conv_kernel_size": 4}),
        None, 4_032,
    ),
    "nemotron-h-8b": (
        {"model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 21504,
         "num_attention_heads": 32, "num_key_value_heads": 8, "attention_head_dim": 128,
         "vocab_size": 131072, "num_hidden_layers": 52, "mamba_num_heads": 128,
         "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
         "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"},
        None, 8_192,
    ),
    "nemotron-super-49b": (
        {"model_type": "nemotron-nas", "num_hidden_layers": 4, "hidden_size": 8192,
         "num_attention_heads": 64, "num_key_value_heads": None, "intermediate_size": None,
         "vocab_size": 128256, "block_configs": [
             {"attention": {"n_heads_in_group": 8, "no_op": False},
              "ffn": {"ffn_mult": 5.25, "no_op": False}},
             {"attention": {"n_heads_in_group": None, "no_op": True},
              "ffn": {"ffn_mult": 2.625, "no_op": False}},
             {"attention": {"n_heads_in_group": 16, "no_op": False},
              "ffn": {"ffn_mult": None, "no_op": True}},
             {"attention": {"replace_with_linear": True}, "ffn": {"ffn_mult": 1.0}},
         ]},
        None, 2 * 8 * 128 + 2 * 4 * 128,
    ),
    "openelm-270m": (
        {"model_type": "openelm", "num_transformer_layers": 16, "model_dim": 1280, "head_dim": 64,
         "vocab_size": 32000, "ffn_dim_divisor": 256, "share_input_output_layers": True,
         "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07,
                             3.3, 3.53, 3.77, 4.0],
         "num_query_heads": [12] * 5 + [16] * 7 + [20] * 4,
         "num_kv_heads": [3] * 5 + [4] * 7 + [5] * 4},
        271_527_168, 8_064,
    ),
    "llama-3.2-11b-vision": (
        {"model_type": "mllama", "text_config": llama(
            "mllama_text_model", 40, 4096, 14336, 128256, 32, 8,
            cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38], tie_word_embeddings=False)},
        None, 65_536,
    ),
}  # fmt: skip
