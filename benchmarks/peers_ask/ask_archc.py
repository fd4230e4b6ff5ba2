"""archc (AC): its throughput model on its H100, given the architecture by hand."""

import contextlib
import io

from _serve import serve
from ac.throughput_model import ArchConfig, estimate_memory_per_gpu, throughput


def answer(question):
    config = question["config"]
    heads = config["num_attention_heads"]
    fields = {
        "d_model": config["hidden_size"],
        "n_layers": config["num_hidden_layers"],
        "n_heads": heads,
        "d_head": config.get("head_dim") or config["hidden_size"] // heads,
        "n_kv_heads": config["num_key_value_heads"],
        "ffn_dim": config["intermediate_size"],
        "vocab_size": config["vocab_size"],
        "batch_size": question["batch"],
        "seq_len": question["context"],
    }
    if config.get("kv_lora_rank"):
        fields |= {
            "attention_type": "mla",
            "mla_kv_latent_dim": config["kv_lora_rank"],
            "mla_q_latent_dim": config["q_lora_rank"],
            "mla_rope_head_dim": config["qk_rope_head_dim"],
            "mla_nope_head_dim": config["qk_nope_head_dim"],
            "d_head": config["qk_nope_head_dim"],
        }
    if config.get("layer_types"):
        fields["local_window"] = config["sliding_window"]
        fields["n_local_attn_layers"] = config["layer_types"].count("sliding_attention")
    arch = ArchConfig(**fields)
    memory = [
        estimate_memory_per_gpu(arch, include_kv_cache=kept, kv_cache_len=question["context"])
        for kept in (True, False)
    ]
    found = {"cache_bytes": memory[0] - memory[1]}
    if question["decode"]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = throughput(
                arch,
                "h100",
                tp_degree=question["tensor_parallel"],
                decode_kv_len=question["context"],
            )
        found["decode_s"] = result.decode_time_per_token_ms / 1e3
    return found


if __name__ == "__main__":
    serve(answer)
