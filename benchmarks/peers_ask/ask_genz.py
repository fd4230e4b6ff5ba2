"""GenZ: its decode model on its H100, given a model config of its own made from the question."""

import contextlib
import io

from _serve import serve
from GenZ import decode_moddeling
from GenZ.Models import ModelConfig

MB = 2**20


def answer(question):
    config = question["config"]
    experts = config.get("n_routed_experts") or config.get("num_local_experts") or 1
    model = ModelConfig(
        model="asked",
        vocab_size=config["vocab_size"],
        max_model_len=10**9,
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        num_ffi=2,
        num_decoder_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        head_dim=config.get("head_dim"),
        num_key_value_heads=config["num_key_value_heads"],
        sliding_window=config.get("sliding_window"),
        num_experts=experts,
        expert_top_k=config.get("num_experts_per_tok") or 1,
        moe_intermediate_size=config.get("moe_intermediate_size"),
    )
    asked = {
        "model": model,
        "batch_size": question["batch"],
        "input_tokens": question["context"],
        "output_tokens": 0,
        "Bb": 1,
        "system_name": "H100_GPU",
        "bits": "bf16",
    }
    ranks = question["tensor_parallel"]
    with contextlib.redirect_stdout(io.StringIO()):
        _, summary = decode_moddeling(**asked, model_profilling=True)
        found = {"cache_bytes": float(summary["KV Cache (MB)"].values[0]) * MB}
        if question["decode"]:
            timed = decode_moddeling(**asked, tensor_parallel=ranks)
            found["decode_s"] = float(timed["Latency"]) / 1e3
    return found


if __name__ == "__main__":
    serve(answer)
