"""The names that one idea goes by in model configurations, most usual first.

Gathered from the configuration classes of transformers 5.24 and from files of models that bring
their own code (MPT, ChatGLM, OpenELM, Nemotron, Step, EleutherAI's GPT-NeoX, LitGPT, Meta's
params.json).
"""

from __future__ import annotations

__all__ = ["SPELLINGS"]

SPELLINGS: dict[str, tuple[str, ...]] = {
    name: (name, *others)
    for name, others in {
        "num_hidden_layers": (
            "n_layer", "n_layers", "num_layers", "num_transformer_layers", "decoder_layers",
            "num_decoder_layers", "decoder_num_hidden_layers",
        ),
        "hidden_size": ("n_embd", "n_embed", "d_model", "model_dim", "dim", "decoder_hidden_size"),
        "num_attention_heads": (
            "n_head", "n_heads", "num_heads", "decoder_attention_heads", "num_query_heads",
            "attention_heads", "decoder_num_attention_heads",
        ),
        "num_key_value_heads": (
            "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads", "num_query_groups",
            "multi_query_group_num", "num_attention_groups", "decoder_num_key_value_heads",
            "n_query_groups", "n_kv_head", "kv_heads",
        ),
        "head_dim": ("kv_channels", "attention_head_dim", "d_kv", "head_size", "d_head",
                     "key_size"),
        "intermediate_size": (
            "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "decoder_ffn_dim", "hidden_dim",
            "inner_hidden_size", "dff", "ff_intermediate_size", "feed_forward_dim",
        ),
        "vocab_size": ("padded_vocab_size", "n_vocab"),
        "max_position_embeddings": (
            "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length",
            "max_context_length", "max_target_positions", "model_max_length",
        ),
        "sliding_window_pattern": ("_sliding_window_pattern",),
        "sliding_window": ("sliding_window_size", "attention_window_size"),
        "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts",
                        "num_routed_experts"),
        "num_experts_per_tok": (
            "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts",
            "num_selected_experts", "num_experts_per_topk",
        ),
        "moe_intermediate_size": ("expert_ffn_hidden_size", "moe_ffn_hidden_size",
                                  "expert_intermediate_size"),
        "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
        "shared_expert_intermediate_size": (
            "moe_shared_expert_intermediate_size", "shared_intermediate_size",
            "share_expert_dim",
        ),
        "decoder_sparse_step": ("interleave_moe_layer_step", "moe_layer_interval"),
        "first_k_dense_replace": ("num_dense_layers", "moe_layer_start_index"),
        "tie_word_embeddings": (
            "tie_embedding", "tie_embeddings", "share_input_output_layers", "weight_tying",
            "use_embedding_sharing",
        ),
        "attention_bias": ("use_qkv_bias", "qkv_bias", "add_qkv_bias"),
        "layer_types": ("layers_block_type",),
        "hidden_act": ("activation_function", "hidden_activation", "afn"),
    }.items()
}  # fmt: skip
