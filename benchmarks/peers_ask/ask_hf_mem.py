"""hf-mem: its cache function, given the config directly: its command asks the hub."""

from _serve import serve
from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size


def answer(question):
    config = question["config"]
    bytes_ = compute_safetensors_kv_cache_size(
        config, "BF16", max_model_len=question["context"], batch_size=question["batch"]
    )
    return {"cache_bytes": bytes_}


if __name__ == "__main__":
    serve(answer)
