"""kvfit: its cache estimator, given the config directly: its command asks the hub."""

from _serve import serve
from kvfit.architectures import estimate_cache


def answer(question):
    found = estimate_cache(question["config"], context_tokens=question["context"], kv_bytes=2.0)
    return {"cache_bytes": found.total_bytes * question["batch"]}


if __name__ == "__main__":
    serve(answer)
