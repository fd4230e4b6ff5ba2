"""The reference modules against other people's: torch, transformers, and the core's counts."""

# ruff: noqa: E402, TID253 - torch is imported only where it is installed
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from configurator.attention.cache import Cache
from configurator.attention.gqa import GroupedQueryAttention, attend, mask
from configurator.attention.mla import LatentAttention
from configurator.attention.rope import rotate, tables
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _deterministic():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def gqa(**changes):
    fields = {"d_model": 64, "n_heads": 8, "n_kv_heads": 2, "d_head": 16} | changes
    return GroupedQuery(**fields)


def mla(**changes):
    fields = {
        "d_model": 48, "n_heads": 4, "kv_lora_rank": 24, "q_lora_rank": 20,
        "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10,
    } | changes  # fmt: skip
    return Latent(**fields)


GEOMETRIES = [
    gqa(n_kv_heads=8),
    gqa(),
    gqa(n_kv_heads=1),
    gqa(d_head=24, v_head_dim=12),
    gqa(bias="qkv"),
    gqa(bias="all", qk_norm=True),
    gqa(bias="o"),
    gqa(value_is_key=True),
    mla(),
    mla(q_lora_rank=0),
    mla(bias="all"),
]


def build(geometry, **options):
    kind = LatentAttention if isinstance(geometry, Latent) else GroupedQueryAttention
    return kind(geometry, **options).eval()


# --- against torch -------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_equals_torch_module(causal):
    theirs = nn.MultiheadAttention(64, 8, bias=True, batch_first=True).eval()
    ours = build(
        GroupedQuery(d_model=64, n_heads=8, n_kv_heads=8, d_head=8, bias="all"),
        rope_base=None,
        causal=causal,
    )
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        getattr(ours, name).weight.copy_(theirs.in_proj_weight.chunk(3)[i])
        getattr(ours, name).bias.copy_(torch.randn(64))
        theirs.in_proj_bias.view(3, 64)[i].copy_(getattr(ours, name).bias)
    ours.o_proj.load_state_dict(theirs.out_proj.state_dict())
    x = torch.randn(2, 7, 64)
    blocked = torch.ones(7, 7, dtype=torch.bool).triu(1) if causal else None
    expected, expected_weights = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
    found, weights = ours(x, need_weights=True)
    torch.testing.assert_close(found, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


def test_cross_attention_equals_torch_module():
    theirs = nn.MultiheadAttention(64, 8, bias=False, kdim=40, vdim=40, batch_first=True).eval()
    geometry = GroupedQuery(d_model=64, n_heads=8, n_kv_heads=8, d_head=8, d_source=40)
    ours = build(geometry, cross=True)
    for name in ("q", "k", "v"):
        getattr(ours, f"{name}_proj").weight.copy_(getattr(theirs, f"{name}_proj_weight"))
    ours.o_proj.weight.copy_(theirs.out_proj.weight)
    x, source = torch.randn(2, 5, 64), torch.randn(2, 9, 40)
    expected, _ = theirs(x, source, source, need_weights=False)
    torch.testing.assert_close(ours(x, source), expected, **CLOSE)


def test_cross_attention_reads_its_cache_without_a_source():
    layer = build(gqa(d_source=40), cross=True)
    cache = Cache(layer.geometry, batch=2, capacity=9)
    x, source = torch.randn(2, 5, 64), torch.randn(2, 9, 40)
    first = layer(x, source, cache=cache)
    torch.testing.assert_close(layer(x, cache=cache), first, **CLOSE)
    with pytest.raises(ValueError, match="needs a source"):
        layer(x, cache=Cache(layer.geometry, batch=2, capacity=9))


@pytest.mark.parametrize("n_kv_heads", [8, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_attend_equals_sdpa_with_enable_gqa(n_kv_heads, causal):
    q, k, v = (torch.randn(2, h, 6, 16) for h in (8, n_kv_heads, n_kv_heads))
    positions = torch.arange(6)
    found, _ = attend(q, k, v, mask(positions, positions) if causal else None)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    torch.testing.assert_close(found, expected, **CLOSE)


# --- against transformers ------------------------------------------------------------------


def rotary(module, x):
    return module(x, torch.arange(x.shape[1])[None])


@pytest.mark.parametrize(("n_kv_heads", "bias"), [(8, False), (2, False), (1, True)])
def test_equals_llama_attention(n_kv_heads, bias):
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(
        hidden_size=64, num_attention_heads=8, num_key_value_heads=n_kv_heads, head_dim=16,
        attention_bias=bias, attn_implementation="sdpa",
    )  # fmt: skip
    theirs = llama.LlamaAttention(config, 0).eval()
    ours = build(gqa(n_kv_heads=n_kv_heads, bias="all" if bias else "none"))
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 11, 64)
    expected, _ = theirs(x, rotary(llama.LlamaRotaryEmbedding(config), x), None)
    torch.testing.assert_close(ours(x), expected, **CLOSE)


def test_qk_norm_equals_qwen3_attention():
    qwen = pytest.importorskip("transformers.models.qwen3.modeling_qwen3")
    config = qwen.Qwen3Config(
        hidden_size=64, num_attention_heads=8, num_key_value_heads=2, head_dim=16,
        attention_bias=False, attn_implementation="sdpa",
    )  # fmt: skip
    theirs = qwen.Qwen3Attention(config, 0).eval()
    theirs.q_norm.weight.copy_(torch.rand(16) + 0.5)
    theirs.k_norm.weight.copy_(torch.rand(16) + 0.5)
    base = config.rope_parameters["rope_theta"]
    ours = build(gqa(qk_norm=True), rope_base=base)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 11, 64)
    expected, _ = theirs(x, rotary(qwen.Qwen3RotaryEmbedding(config), x), None)
    torch.testing.assert_close(ours(x), expected, **CLOSE)


@pytest.mark.parametrize("q_lora_rank", [20, 0])
@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_equals_deepseek_v3_attention(q_lora_rank, absorbed, interleaved):
    deepseek = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
    config = deepseek.DeepseekV3Config(
        hidden_size=48, num_attention_heads=4, num_key_value_heads=4, kv_lora_rank=24,
        q_lora_rank=q_lora_rank or None, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10,
        attention_bias=bool(q_lora_rank), rope_interleave=interleaved,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        attn_implementation="eager",
    )  # fmt: skip
    theirs = deepseek.DeepseekV3Attention(config, 0).eval()
    for norm in ("q_a_layernorm", "kv_a_layernorm"):
        if getattr(theirs, norm, None) is not None:
            getattr(theirs, norm).weight.copy_(torch.rand_like(getattr(theirs, norm).weight) + 0.5)
    names = {
        "q_a_proj": "q_a", "q_a_layernorm": "q_a_norm", "q_b_proj": "q_b",
        "kv_a_proj_with_mqa": "kv_a", "kv_a_layernorm": "kv_a_norm", "kv_b_proj": "kv_b",
    }  # fmt: skip
    weights = {}
    for key, value in theirs.state_dict().items():
        module, _, leaf = key.rpartition(".")
        weights[f"{names.get(module, module)}.{leaf}"] = value
    ours = build(
        mla(q_lora_rank=q_lora_rank, bias="all" if q_lora_rank else "none"), interleaved=interleaved
    )
    ours.load_state_dict(weights)
    x = torch.randn(2, 9, 48)
    blocked = torch.full((1, 1, 9, 9), float("-inf")).triu(1)
    expected, _ = theirs(x, rotary(deepseek.DeepseekV3RotaryEmbedding(config), x), blocked)
    torch.testing.assert_close(ours(x, absorbed=absorbed), expected, **CLOSE)


# --- against itself ------------------------------------------------------------------------


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_decode_with_a_cache_equals_the_full_forward(geometry):
    layer = build(geometry)
    x = torch.randn(2, 9, geometry.d_model)
    cache = Cache(geometry, batch=2, capacity=9)
    prompt = layer(x[:, :4], cache=cache)
    steps = [layer(x[:, i : i + 1], cache=cache) for i in range(4, 9)]
    torch.testing.assert_close(torch.cat([prompt, *steps], dim=1), layer(x), **CLOSE)
    assert cache.length == 9


@pytest.mark.parametrize("prompt", [1, 3, 5, 8])
def test_window_ring_equals_the_full_forward(prompt):
    geometry = gqa()
    layer = build(geometry, window=4)
    x = torch.randn(2, 12, 64)
    cache = Cache(geometry, batch=2, capacity=12, window=4)
    parts = [layer(x[:, :prompt], cache=cache)]
    parts.append(layer(x[:, prompt : prompt + 2], cache=cache))
    parts += [layer(x[:, i : i + 1], cache=cache) for i in range(prompt + 2, 12)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **CLOSE)
    assert cache.nbytes == 2 * 4 * 2 * (16 + 16) * 4  # batch x window x heads x widths x fp32


@pytest.mark.parametrize("query", [1, 5])
def test_absorbed_equals_expanded_with_a_cache(query):
    layer = build(mla())
    x = torch.randn(2, 6 + query, 48)
    found = []
    for absorbed in (False, True):
        cache = Cache(layer.geometry, batch=2, capacity=16)
        layer(x[:, :6], cache=cache)
        found.append(layer(x[:, 6:], cache=cache, absorbed=absorbed))
    torch.testing.assert_close(*found, **CLOSE)


def test_a_full_cache_says_how_much_it_holds():
    layer, cache = build(gqa()), Cache(gqa(), batch=1, capacity=4)
    layer(torch.randn(1, 4, 64), cache=cache)
    with pytest.raises(ValueError, match=r"holds 4 tokens; 4 \+ 1 do not fit"):
        layer(torch.randn(1, 1, 64), cache=cache)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="8 is not a multiple of n_kv_heads 3"):
        GroupedQueryAttention(gqa(n_kv_heads=3))


@settings(deadline=None, max_examples=25)
@given(
    pairs=st.integers(1, 16),
    shift=st.integers(0, 500),
    distance=st.integers(0, 100),
    interleaved=st.booleans(),
)
def test_rope_keeps_lengths_and_sees_distance_only(pairs, shift, distance, interleaved):
    # Su et al. 2021, section 3.2.1: <R_m q, R_n k> depends on m - n.
    with torch.no_grad():
        q, k = torch.randn(2, 1, 1, 1, 2 * pairs, dtype=torch.float64)

        def at(x, p):
            return rotate(x, tables(torch.tensor([p]), 2 * pairs), interleaved=interleaved)

        near = (at(q, distance) * at(k, 0)).sum()
        far = (at(q, distance + shift) * at(k, shift)).sum()
        torch.testing.assert_close(far, near, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(at(q, shift).norm(), q.norm(), rtol=1e-5, atol=1e-5)


def test_rope_refuses_an_odd_width():
    with pytest.raises(ValueError, match="odd"):
        tables(torch.arange(3), 7)


# --- against the core's counts -------------------------------------------------------------


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_parameters_equal_the_core(geometry):
    assert sum(p.numel() for p in build(geometry).parameters()) == geometry.params()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_flops_equal_the_core(geometry):
    """A prompt computes the whole square (the mask drops half of it later); a step, one row."""
    layer = build(geometry)
    batch, prompt = 2, 6
    x = torch.randn(batch, prompt + 1, geometry.d_model)
    with FlopCounterMode(display=False) as counter:
        layer(x[:, :prompt])
    dense = 2 * geometry.matmul_params()
    square = geometry.score_flops("prefill") * prompt * prompt
    assert counter.get_total_flops() == batch * (prompt * dense + square)

    cache = Cache(geometry, batch=batch, capacity=prompt + 1)
    layer(x[:, :prompt], cache=cache)
    options = {"absorbed": True} if isinstance(geometry, Latent) else {}
    with FlopCounterMode(display=False) as counter:
        layer(x[:, prompt:], cache=cache, **options)
    row = geometry.score_flops("decode") * (prompt + 1)
    assert counter.get_total_flops() == batch * (dense + row)
