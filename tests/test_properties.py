"""Invariants over the whole space of requests and geometries."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from configurator import Request, UsageError, recommend
from configurator.core import cost, flops
from configurator.core.case import Case, FeedForward, Workload
from configurator.core.dtypes import DTYPES, cache_type
from configurator.core.examples import example, example_device
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.quality import penalty
from configurator.core.shapes import decoder

TARGETS = st.sampled_from(
    [None, "rtx-4090", "h100-sxm", "8xh100-sxm", "4xa100-sxm-80gb", "l40s", "apple-m3-pro",
     "raspberry-pi-5-8gb", "2x8xh200-sxm", "epyc-9654"]
)  # fmt: skip
REQUESTS = st.fixed_dictionaries(
    {
        "params": st.integers(30_000_000, 900_000_000_000),
        "context": st.integers(1, 2**22),
        "batch": st.integers(1, 512),
        "target": TARGETS,
        "priority": st.sampled_from(["balanced", "quality", "latency", "memory", "training"]),
        "arch": st.sampled_from(["decoder", "decoder", "decoder", "encoder", "encoder-decoder"]),
        "kv_dtype": st.sampled_from(["bf16", "fp8", "q8_0", "k=q8_0,v=q4_0"]),
    },
    optional={
        "active_params": st.integers(20_000_000, 100_000_000_000),
        "d_head": st.sampled_from(["64", "128", "64,128", "256"]),
        "projection": st.sampled_from(["mha", "gqa", "mqa", "mla", "gqa,mla"]),
        "d_model": st.sampled_from([512, 1000, 1024, 2880, 4096, 7168, 16384]),
        "n_layers": st.integers(1, 150),
        "allow_decoupled_heads": st.booleans(),
        "benchmarking": st.booleans(),
        "tie_embeddings": st.booleans(),
        "window": st.integers(1, 100_000),
        "tensor_parallel": st.sampled_from([1, 2, 4, 8]),
        "vocab_size": st.sampled_from([256, 32_000, 262_144]),
    },
)


def answer(request_):
    """The report, or the line that refused the request; anything else is a defect."""
    try:
        return recommend(Request(**request_)).report, ""
    except UsageError as error:
        return None, str(error)


@settings(
    max_examples=60,
    phases=[Phase.explicit, Phase.generate],  # shrinking a whole recommendation takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)
@given(REQUESTS)
def test_every_request_gets_a_sound_answer_or_one_clear_line(request_):
    report, refused = answer(request_)
    if report is None:
        assert refused
        assert "\n" not in refused
        return
    r = report.recommendation
    assert r.n_heads % r.n_kv_heads == 0
    assert r.d_head >= 32
    if not request_.get("allow_decoupled_heads"):
        assert r.n_heads * r.d_head == r.d_model
    assert abs(r.params_total / request_["params"] - 1) <= 0.01
    if request_.get("active_params"):
        assert abs(r.params_active / request_["active_params"] - 1) <= 0.01
    everything = [r, *(o.recommendation for o in report.alternatives)]
    if request_["params"] < 1e9 and not request_.get("benchmarking"):
        assert all(o.projection != "MLA" for o in everything)
    assert all(o.d_head >= 32 for o in everything)
    if r.projection == "MHA" and r.n_heads > 16 and request_["context"] > 32768:
        said = {x.id for x in report.rules}
        assert r.arch != "decoder" or "memory/mha-beyond-32k" in said
    if report.fits and report.target:
        m = report.memory
        assert m.weights_bytes + m.cache_bytes + m.reserve_bytes <= m.capacity_bytes * 1.001


HEADS = st.sampled_from([1, 2, 4, 8, 12, 16, 28, 32, 48, 64, 71, 96, 128])
WIDTHS = st.sampled_from([32, 64, 80, 96, 128, 192, 256])


@st.composite
def geometries(draw):
    heads = draw(HEADS)
    kv = draw(st.sampled_from([k for k in range(1, heads + 1) if heads % k == 0]))
    return {
        "n_heads": heads,
        "n_kv_heads": kv,
        "d_head": draw(WIDTHS),
        "d_model": draw(st.sampled_from([512, 2048, 4096, 7168])),
    }


@given(geometries(), st.integers(1, 10**6), st.integers(1, 1000), st.sampled_from(sorted(DTYPES)))
def test_the_cache_grows_with_context_batch_and_kv_heads(geometry, context, batch, kv_dtype):
    one = example(**geometry, context=context, batch=batch, kv_dtype=kv_dtype)
    assert cost.cache_bytes(one) == batch * context * cost.cache_bytes_per_token(one)
    longer = replace(one, workload=replace(one.workload, context=context + 1))
    wider = replace(one, workload=replace(one.workload, batch=batch + 1))
    assert cost.cache_bytes(longer) > cost.cache_bytes(one)
    assert cost.cache_bytes(wider) > cost.cache_bytes(one)
    mqa = example(**{**geometry, "n_kv_heads": 1}, kv_dtype=kv_dtype)
    mha = example(**{**geometry, "n_kv_heads": geometry["n_heads"]}, kv_dtype=kv_dtype)
    low, here, high = (cost.cache_bytes_per_token(c) for c in (mqa, one, mha))
    assert low <= here <= high


@given(geometries())
def test_more_kv_heads_never_cost_more_loss(geometry):
    heads = geometry["n_heads"]
    losses = [
        penalty(example(**{**geometry, "n_kv_heads": kv}).attention).nats
        for kv in range(1, heads + 1)
        if heads % kv == 0
    ]
    assert losses == sorted(losses, reverse=True)


@given(geometries(), st.sampled_from([1, 2, 3, 4, 6, 8, 16]))
def test_ranks_hold_whole_heads_and_never_none(geometry, ranks):
    case = example(**geometry)
    kv, width = geometry["n_kv_heads"], geometry["d_head"]
    held = cost.cache_bytes_per_token(case, tensor_parallel=ranks)
    assert held == 32 * math.ceil(kv / ranks) * 2 * width * 2
    assert held * ranks >= cost.cache_bytes_per_token(case)  # a split loses nothing


@settings(max_examples=30)
@given(st.lists(geometries(), min_size=1, max_size=8), st.integers(1, 10**5))
def test_columns_equal_numbers(rows, context):
    keys = ("n_heads", "n_kv_heads", "d_head")
    columns = {k: np.array([row[k] for row in rows], dtype=np.int64) for k in keys}
    device = example_device()
    work = Workload(context=context, batch=3, tensor_parallel=1)

    def case(values):
        a = GroupedQuery(d_model=4096, **values)
        ff = FeedForward(d_model=4096, d_ff=11008)
        shape = decoder(a, n_layers=32, feed_forward=ff, vocab_size=32000)
        return Case(shape=shape, workload=work, device=device)

    many = case(columns)
    for name in (
        "cache_bytes", "cache_bytes_per_token", "cache_bytes_per_rank", "decode_flops",
        "prefill_flops", "max_batch",
    ):  # fmt: skip
        counted = getattr(flops if name.endswith("flops") else cost, name)
        together = counted(many)
        for i, row in enumerate(rows):
            alone = counted(case({k: row[k] for k in keys}))
            assert together[i] == pytest.approx(alone, rel=1e-12), name
    memory = cost.memory(many)
    for i, row in enumerate(rows):
        alone = cost.memory(case({k: row[k] for k in keys}))
        for field in fields(alone):
            value = getattr(memory, field.name)
            assert np.broadcast_to(value, (len(rows),))[i] == getattr(alone, field.name)


@given(
    st.integers(1, 128), st.integers(1, 2048), st.integers(1, 128), st.integers(1, 64),
    st.sampled_from([1, 2, 4, 8]),
)  # fmt: skip
def test_a_latent_is_copied_to_every_rank(heads, rank, nope, rope, ranks):
    a = Latent(
        d_model=1024, n_heads=heads, kv_lora_rank=rank, qk_nope_head_dim=nope,
        qk_rope_head_dim=rope,
    )  # fmt: skip
    kv = cache_type("bf16")
    assert a.cache_bytes(kv, ranks) == a.cache_bytes(kv, 1) == 2 * (rank + rope)


@given(st.integers(1, 10**7), st.integers(0, 10**9))
def test_the_longest_context_fits_and_one_token_more_does_not(window, budget):
    case = example(window=window, full_every=4)
    longest = cost.max_context(case, budget)

    def needs(tokens):
        return cost.cache_bytes(replace(case, workload=replace(case.workload, context=tokens)))

    if longest:
        assert needs(longest) <= budget
    assert needs(longest + 1) > budget
