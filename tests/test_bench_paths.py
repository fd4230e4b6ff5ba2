"""Which kernel grouped attention really takes; the combinations of public bug reports."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from configurator.bench.paths import classify, observed_path, sdpa_path

# device, dtype, query heads, KV heads, key width, value width, queries, keys -> path
COMBINATIONS = {
    "a": ("cpu", "float32", 32, 8, 128, 128, 1, 1024, "fused"),
    "b": ("cpu", "bfloat16", 71, 1, 64, 64, 1, 256, "fused"),
    "c": ("cpu", "float32", 32, 8, 100, 100, 1, 256, "fused"),
    "d": ("cpu", "float32", 16, 16, 192, 128, 1, 256, "math (K and V widths differ)"),
    "e": ("cpu", "bfloat16", 16, 1, 576, 512, 1, 256, "math, K and V copied to every head"),
    "f": ("cpu", "float32", 32, 5, 64, 64, 1, 16, "refused: 32 heads are not a multiple of 5"),
    "g": (
        "cuda sm80+", "float32", 24, 12, 64, 64, 3081, 3081,
        "math; advise bf16, or copy K and V first",
    ),
    "h": ("cuda sm75", "float16", 12, 2, 128, 128, 1, 1024, "math; advise copying K and V first"),
    "i": (
        "cuda sm80+", "bfloat16", 32, 4, 512, 512, 8192, 8192,
        "math, quadratic memory; advise copying K and V first",
    ),
    "j": ("cuda sm80+", "bfloat16", 32, 8, 128, 128, 4096, 4096, "fused"),
}  # fmt: skip
ON_CPU = [name for name, row in COMBINATIONS.items() if row[0] == "cpu"]


@pytest.mark.parametrize("name", COMBINATIONS)
def test_predicted(name):
    *combination, expected = COMBINATIONS[name]
    assert str(sdpa_path(*combination)) == expected


@pytest.mark.parametrize("name", ON_CPU)
def test_the_profiler_sees_the_predicted_path(name):
    device, dtype, heads, kv_heads, d_k, d_v, queries, keys, _ = COMBINATIONS[name]
    kind = getattr(torch, dtype)
    q = torch.randn(1, heads, queries, d_k, dtype=kind)
    k = torch.randn(1, kv_heads, keys, d_k, dtype=kind)
    v = torch.randn(1, kv_heads, keys, d_v, dtype=kind)

    def call():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    predicted = sdpa_path(device, dtype, heads, kv_heads, d_k, d_v, queries, keys)
    if predicted.kind == "refused":
        with pytest.raises(RuntimeError, match="must divide the number of heads"):
            call()
        return
    seen = observed_path(call)
    assert seen.startswith(predicted.kind)
    assert ("copied" in seen) == ("copied" in str(predicted))


def test_grouped_decode_on_a_cpu_is_fused_and_still_not_the_way():
    assert "folding the group" in sdpa_path("cpu", "bfloat16", 32, 8, 128, 128, 1, 8192).advice
    assert sdpa_path("cpu", "bfloat16", 32, 32, 128, 128, 1, 8192).advice == ""


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("2.6.0", "refused: grouped heads crash on MPS before torch 2.7"),
        ("2.11.0", "math, K and V copied to every head"),
        ("2.12.1", "fused"),
    ],
)
def test_mps_by_version(version, path):
    found = sdpa_path("mps", "float16", 32, 8, 128, 128, 1, 512, torch_version=version)
    assert str(found) == path


def test_widths_that_no_fused_cuda_kernel_takes():
    # 16-bit widths must be multiples of 8 for memory-efficient attention, and equal for flash.
    assert sdpa_path("cuda", "bfloat16", 8, 8, 192, 128, 1, 512).kind == "fused"
    assert sdpa_path("cuda", "bfloat16", 8, 8, 516, 516, 1, 512).kind == "math"


@pytest.mark.parametrize(
    ("heads", "kv_heads", "width", "queries", "path"),
    [
        (32, 8, 256, 1, "fused"),
        (32, 8, 80, 512, "fused"),  # prefill has 32, 72 and 80 too
        (32, 8, 80, 8, "math, K and V copied to every head"),
        (32, 8, 192, 512, "math, K and V copied to every head"),
        (32, 32, 192, 512, "math (no fused kernel takes these widths)"),
    ],
)
def test_mps_by_width(heads, kv_heads, width, queries, path):
    found = sdpa_path(
        "mps", "float16", heads, kv_heads, width, width, queries, 512, torch_version="2.13"
    )
    assert str(found) == path


@pytest.mark.parametrize(("heads", "kv_heads"), [(32, 0), (32, -8), (0, 0)])
def test_head_counts_that_cannot_be_are_refused(heads, kv_heads):
    assert sdpa_path("cpu", "float32", heads, kv_heads, 64, 64, 1, 16).kind == "refused"


def test_our_names_of_types_are_known_too():
    for ours, torchs in (("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")):
        shape = (32, 8, 128, 128, 1, 1024)
        assert sdpa_path("cuda", ours, *shape) == sdpa_path("cuda", torchs, *shape)


def test_unknown_devices_are_named():
    with pytest.raises(ValueError, match="device 'tpu' is not"):
        sdpa_path("tpu", "bfloat16", 8, 8, 64, 64, 1, 1)


def test_plain_products_are_named():
    a = torch.randn(2, 3, 4)
    assert observed_path(lambda: torch.bmm(a, a.transpose(1, 2))) == "products (bmm)"
    assert classify([]) == "unknown"
