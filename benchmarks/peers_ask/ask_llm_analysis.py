"""llm-analysis: its model config has no head width, latent or window; what it has is filled in."""

from _serve import serve
from llm_analysis.analysis import LLMAnalysis, ParallelismConfig
from llm_analysis.config import ModelConfig, get_dtype_config_by_name, get_gpu_config_by_name


def analysed(model, ranks):
    return LLMAnalysis(
        model,
        get_gpu_config_by_name("h100-sxm-80gb"),
        get_dtype_config_by_name("w16a16e16"),
        ParallelismConfig(tp_size=ranks, pp_size=1, sp_size=ranks, dp_size=1),
    )


def answer(question):
    config = question["config"]
    model = ModelConfig(
        name="asked",
        num_layers=config["num_hidden_layers"],
        n_head=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        vocab_size=config["vocab_size"],
        max_seq_len=None,
        num_key_value_heads=config["num_key_value_heads"],
        ffn_embed_dim=config["intermediate_size"],
        expansion_ratio=config["intermediate_size"] / config["hidden_size"],
        model_type=config["model_type"],
    )
    per_layer = analysed(model, 1).get_memory_kv_cache_per_layer(
        question["batch"], question["context"]
    )
    found = {"cache_bytes": per_layer * config["num_hidden_layers"]}
    if question["decode"]:
        summary = analysed(model, question["tensor_parallel"]).inference(
            batch_size_per_gpu=question["batch"],
            seq_len=question["context"],
            num_tokens_to_generate=1,
        )
        found["decode_s"] = summary["decode_latency"]
    return found


if __name__ == "__main__":
    serve(answer)
