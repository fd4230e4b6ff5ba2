"""A whole model's step: worked points, its terms, and what must hold of any of them.

The quoted times of a step are a kernel database's (ai-dynamo/aiconfigurator) for an H100 and
gpt-fast's README for an A100.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from configurator.catalog.published import model
from configurator.catalog.targets import device
from configurator.core.case import Case, Workload
from configurator.core.dtypes import cache_type
from configurator.core.examples import example, example_device
from configurator.core.layers import LayerGroup, ModelShape, Scope
from configurator.core.step import decode_seconds, prefill_seconds, step
from configurator.core.step_parts import decode_step, rank_attention


def published(name, target, **work):
    kv = cache_type(work.pop("kv", "bf16"))
    return Case(shape=model(name).shape(), workload=Workload(kv=kv, **work), device=device(target))


@pytest.mark.parametrize(
    ("name", "target", "work", "milliseconds"),
    [
        ("llama-3.1-8b", "h100-sxm", {"context": 8192}, 6.94),
        ("llama-3.1-8b", "h100-sxm", {"context": 131072}, 13.02),
        ("llama-3.1-8b", "h100-sxm", {"context": 8192, "batch": 16}, 12.42),
        ("llama-3.1-70b", "8xh100-sxm", {"context": 8192, "tensor_parallel": 8}, 10.01),
        ("llama-2-7b", "a100-sxm-80gb", {"context": 200}, 1e3 / 104.9),
        ("llama-2-7b", "a100-sxm-80gb", {"context": 200, "weight_dtype": "int8"}, 1e3 / 155.6),
    ],
)
def test_published_steps(name, target, work, milliseconds):
    found = step(published(name, target, **work))
    assert found.decode_s * 1e3 == pytest.approx(milliseconds, rel=0.20)
    assert found.error_low < milliseconds / (found.decode_s * 1e3) < found.error_high


def test_terms_sum_to_the_step():
    found = step(published("llama-3.1-70b", "8xh100-sxm", tensor_parallel=8))
    assert sum(found.parts.values()) == pytest.approx(found.decode_s)
    assert set(found.parts) == {"weights", "attention", "launches", "collectives"}


def test_weights_are_read_once_a_step():
    case = published("llama-3.1-8b", "h100-sxm", context=128)
    weights = 2 * (8.03e9 - 128256 * 4096)  # the input embedding is a look-up
    share = case.device.coefficients["step.share"]
    expected = weights / (share * 3.35e12)
    assert step(case).parts["weights"] == pytest.approx(expected, rel=0.01)


def test_all_reduce_is_start_hops_and_bytes():
    case = published("llama-3.1-8b", "8xh100-sxm", tensor_parallel=8, batch=64)
    c = case.device.coefficients
    ring = 2 * 7 / 8 * 64 * 4096 * 2 / (c["step.link_share"] * 450e9)
    one = (c["step.reduce_us"] + 3 * c["step.reduce_hop_us"]) * 1e-6 + ring
    assert step(case).parts["collectives"] == pytest.approx(2 * 32 * one)


def test_one_rank_has_no_collectives_and_an_unknown_link_is_unknown():
    alone = example(device=example_device(interconnect_bytes_per_s=0.0))
    assert step(alone).parts["collectives"] == 0
    split = example(device=example_device(interconnect_bytes_per_s=0.0, count=2), tensor_parallel=2)
    found = step(split)
    assert math.isnan(found.decode_s)
    assert found.bound == "unknown"
    assert "lacks a rate" in found.regime


def test_no_rate_no_step():
    found = step(example(device=example_device(flops_per_s={})))
    assert math.isnan(found.decode_s)
    assert math.isnan(found.prefill_s)


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_columns_equal_numbers(batch):
    kv = np.array([1, 2, 4, 8, 16, 32])
    target = example_device(count=4)
    asked = {"device": target, "context": 32768, "batch": batch, "tensor_parallel": 4}
    column = decode_seconds(example(n_kv_heads=kv, **asked))
    alone = [decode_seconds(example(n_kv_heads=int(k), **asked)) for k in kv]
    assert column == pytest.approx(alone, rel=1e-12)
    prompts = prefill_seconds(example(n_kv_heads=kv, **asked))
    assert prompts == pytest.approx(
        [prefill_seconds(example(n_kv_heads=int(k), **asked)) for k in kv], rel=1e-12
    )


def test_split_may_be_a_column():
    target = example_device(count=8)
    ranks = np.array([1, 2, 4, 8])
    column = decode_seconds(example(device=target, tensor_parallel=ranks, context=65536))
    alone = [
        decode_seconds(example(device=target, tensor_parallel=int(r), context=65536)) for r in ranks
    ]
    assert column == pytest.approx(alone, rel=1e-12)


def test_rank_computes_its_own_heads_and_at_least_one():
    a = example(n_heads=32, n_kv_heads=4).attention
    on_eight = rank_attention(a, 8)
    assert (on_eight.n_heads, on_eight.n_kv_heads) == (4, 1)


def test_a_split_that_does_not_divide_waits_for_the_fullest_rank():
    """8 KV heads over 3 ranks: one holds 3, as its cache does; of 32 query heads 11."""
    fullest = rank_attention(example(n_heads=32, n_kv_heads=8).attention, 3)
    assert (fullest.n_heads, fullest.n_kv_heads) == (11, 3)


def test_narrow_weights_are_faster_but_not_in_proportion():
    # gpt-fast on A100: int4 reads a quarter of the bytes and runs at twice the speed
    times = [
        step(published("llama-2-7b", "a100-sxm-80gb", context=200, weight_dtype=t)).decode_s
        for t in ("bf16", "int8", "int4")
    ]
    assert times[0] / times[1] == pytest.approx(155.6 / 104.9, rel=0.12)
    assert times[0] / times[2] == pytest.approx(196.8 / 104.9, rel=0.12)


def test_mixture_reads_the_experts_it_visits_and_exchanges_tokens():
    target = example_device(count=8)
    asked = {"device": target, "n_experts": 64, "experts_per_token": 4, "d_ff": 1024}
    few, many = (decode_step(example(batch=b, **asked), target) for b in (8, 512))
    experts = 32 * 64 * 3 * 4096 * 1024  # layers x experts x SwiGLU
    missed = (1 - 4 / 64) ** 8 - (1 - 4 / 64) ** 512  # of them, by 8 tokens but not by 512
    more = missed * 2 * experts / 8 / (0.85 * 2e12)  # spread over 8 devices, share by prior
    assert many.weights - few.weights == pytest.approx(more, rel=0.02)
    assert few.collectives > 0  # attention is replicated, tokens travel to their experts
    one = replace(target, count=1)
    assert decode_step(example(batch=8, **asked | {"device": one}), one).collectives == 0


def test_window_and_full_layers_are_costed_apart():
    target = example_device()
    asked = {"device": target, "context": 131072, "batch": 8, "n_layers": 32}
    full = step(example(**asked)).parts["attention"]
    mixed = step(example(window=1024, full_every=4, **asked)).parts["attention"]
    assert full / 4 < mixed < 0.5 * full


def _with_group(**group):
    base = example(device=example_device(), context=32768, batch=4)
    extra = LayerGroup(count=8, **group)
    return replace(base, shape=replace(base.shape, groups=(*base.shape.groups, extra)))


def test_recurrent_state_is_read_and_written():
    base = decode_step(example(device=example_device(), context=32768, batch=4), example_device())
    state = 64 * 2**20
    case = _with_group(attention=None, scope=Scope("recurrent", state))
    found = decode_step(case, case.device)
    added = found.attention - base.attention
    moved = 8 * 2 * 4 * state / case.device.bandwidth_bytes_per_s
    assert moved < added < 1.5 * moved


@pytest.mark.parametrize("kind", ["shared", "cross", "compressed", "window", "chunk"])
def test_every_scope_costs_something(kind):
    base = example(device=example_device(), context=32768, batch=4)
    size = 0 if kind == "shared" else 1024 if kind != "compressed" else 4
    case = _with_group(attention=base.attention, scope=Scope(kind, size), weights=False)
    added = decode_step(case, case.device).attention - decode_step(base, base.device).attention
    eight_full = decode_step(base, base.device).attention / 4  # 8 of 32 layers
    assert 0 < added <= eight_full * 1.001
    if kind in ("window", "chunk", "cross"):
        assert added < 0.5 * eight_full


def test_encoder_only_prefills():
    found = step(example(device=example_device(), arch="encoder", context=512))
    assert found.parts["attention"] == 0
    assert 0 < found.prefill_s < 1


def test_encoder_decoder_reads_its_source():
    short, long = (
        example(device=example_device(), arch="encoder-decoder", source_len=n, context=1024)
        for n in (1024, 16384)
    )
    assert prefill_seconds(long) > 5 * prefill_seconds(short)
    assert decode_seconds(long) > decode_seconds(short)


def test_bound_and_regime_follow_the_largest_term():
    small = step(published("llama-3.1-8b", "h100-sxm", context=1024))
    assert small.bound == "weights"
    assert "change memory, not speed" in small.regime
    # Halving a share of 10 to 20 % saves less than a pair of predictions tells apart.
    between = step(published("llama-3.1-8b", "h100-sxm", context=24576))
    assert (
        0.1
        < 1 - step(published("llama-3.1-8b", "h100-sxm", context=1)).decode_s / (between.decode_s)
        < 0.2
    )
    assert "change memory more than speed" in between.regime
    large = step(published("llama-3.1-8b", "h100-sxm", context=32768, batch=32))
    assert large.bound == "attention"
    assert "change its speed" in large.regime
    tiny = step(published("llama-3.2-1b", "8xh100-sxm", context=128, tensor_parallel=8))
    assert tiny.bound == "collectives"


def test_error_grows_where_nothing_was_measured():
    timed = step(published("llama-3.1-8b", "h100-sxm"))
    assert timed.confidence == "class"
    assert 1.05 < timed.error_high < 1.6
    other = step(published("llama-3.1-8b", "mi300x"))
    assert (other.confidence, other.error_high) == ("unmeasured", 3.0)


def test_a_step_needs_a_device():
    with pytest.raises(ValueError, match="needs a device"):
        decode_seconds(example())


def test_model_without_layers_takes_the_head_alone():
    empty = ModelShape(d_model=1024, n_layers=0, vocab_size=32000, groups=())
    case = Case(shape=empty, device=example_device())
    assert 0 < decode_seconds(case) < 1e-3
