"""Bytes that the allocator really took against the core's prediction, exactly."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from configurator.attention.cache import allocate, allocate_group, held_bytes
from configurator.core.case import Case, ModelShape, Workload
from configurator.core.cost import cache_bytes
from configurator.core.dtypes import DTYPES, cache_type
from configurator.core.kinds.shared_kv import SharedKeyValue
from configurator.core.layers import LayerGroup, Scope
from configurator.core.shapes import geometry

GQA = st.builds(
    lambda kv, group, d, v: geometry(
        d_model=256, n_heads=kv * group, n_kv_heads=kv, d_head=d, v_head_dim=v
    ),
    kv=st.integers(1, 6),
    group=st.integers(1, 4),
    d=st.integers(1, 80),
    v=st.sampled_from([0, 16, 33]),
)
MLA = st.builds(
    lambda heads, rank, rope: geometry(
        d_model=256, n_heads=heads, kv_lora_rank=rank, qk_rope_head_dim=rope
    ),
    heads=st.integers(1, 8),
    rank=st.integers(1, 96),
    rope=st.integers(0, 33),
)
SHARED = st.builds(
    lambda d, index: SharedKeyValue(
        d_model=256, n_heads=4, d_head=d, q_lora_rank=8, o_groups=1, o_lora_rank=8,
        index_head_dim=index,
    ),
    d=st.integers(1, 80),
    index=st.sampled_from([0, 16]),
)  # fmt: skip
SCOPES = st.builds(
    Scope,
    st.sampled_from(["full", "window", "chunk", "compressed", "cross", "recurrent", "shared"]),
    st.integers(1, 40),
)
DTYPE = st.sampled_from(sorted(DTYPES))


@settings(deadline=None, max_examples=150)
@given(
    attention=st.one_of(GQA, MLA, SHARED),
    scopes=st.lists(SCOPES, min_size=1, max_size=3),
    k=DTYPE,
    v=DTYPE,
    batch=st.integers(1, 4),
    context=st.integers(1, 100),
    page=st.sampled_from([1, 16]),
)
def test_allocated_bytes_equal_the_prediction(attention, scopes, k, v, batch, context, page):
    kv = cache_type(f"k={k},v={v}")
    groups = tuple(LayerGroup(count=2, attention=attention, scope=s) for s in scopes)
    shape = ModelShape(d_model=256, n_layers=6, vocab_size=10, groups=groups)
    work = Workload(context=context, batch=batch, kv=kv, page_size=page)
    tensors = [
        t
        for g in groups
        for _ in range(g.count)
        for t in allocate_group(g, kv, batch=batch, context=context, page=page)
    ]
    assert held_bytes(tensors) == cache_bytes(Case(shape=shape, workload=work))


@pytest.mark.parametrize(
    ("dtype", "bytes_"),
    # 2 x 8 KV heads x 128 values x 64 tokens = 131,072 values; q8_0 34 bytes per 32, nvfp4 9 per 16
    [
        ("fp32", 524288),
        ("bf16", 262144),
        ("fp8", 131072),
        ("q8_0", 139264),
        ("nvfp4", 73728),
        ("iq4_nl", 73728),
    ],
)
def test_bytes_by_hand(dtype, bytes_):
    attention = geometry(d_model=4096, n_heads=32, n_kv_heads=8, d_head=128)
    kv = cache_type(dtype)
    assert held_bytes(allocate(attention, kv, batch=1, tokens=64)) == bytes_


def test_a_view_counts_its_whole_storage_once():
    room = torch.empty(4, 100)
    assert held_bytes([room[0], room[1:]]) == 1600
