"""This project: ``audit`` for the cache, ``check`` for a decode step."""

from _serve import serve

from configurator import GeometryRequest, audit, check


def answer(question):
    config, ranks = question["config"], question["tensor_parallel"]
    asked = {"context": question["context"], "batch": question["batch"], "kv_dtype": "bf16"}
    found = {"cache_bytes": audit(config, tensor_parallel=1, **asked).kv_bytes_at_context}
    if question["decode"]:
        request = GeometryRequest(
            d_model=config["hidden_size"],
            n_layers=config["num_hidden_layers"],
            n_heads=config["num_attention_heads"],
            n_kv_heads=config["num_key_value_heads"],
            d_head=config["head_dim"],
            d_ff=config["intermediate_size"],
            vocab_size=config["vocab_size"],
            tie_embeddings=config["tie_word_embeddings"],
            target=f"{ranks}xh100-sxm" if ranks > 1 else "h100-sxm",
            **asked,
        )
        found["decode_s"] = check(request).option.latency.decode_s
    return found


if __name__ == "__main__":
    serve(answer)
