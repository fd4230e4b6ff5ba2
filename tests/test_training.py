"""Training: FLOPs forward and backward, activations kept, and what the priority trades."""

from __future__ import annotations

import numpy as np
import pytest

from configurator import Request, recommend
from configurator.core.case import Case, FeedForward, Workload
from configurator.core.flops import prefill_flops
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.layers import LayerGroup
from configurator.core.shapes import decoder
from configurator.core.training import (
    attention_activation_bytes,
    feed_forward_activation_bytes,
    layer_activation_bytes,
    training_flops,
)
from configurator.render.content import recommendation
from configurator.render.markdown import to_markdown


def heads(n_heads, n_kv_heads, d_head, d_model=None, **more):
    return GroupedQuery(
        d_model=d_model or n_heads * d_head, n_heads=n_heads, n_kv_heads=n_kv_heads,
        d_head=d_head, **more,
    )  # fmt: skip


def model(attention, context, layers=4, d_ff=1024, vocab=1000):
    shape = decoder(
        attention, n_layers=layers, vocab_size=vocab, tied=True,
        feed_forward=FeedForward(d_model=attention.d_model, d_ff=d_ff),
    )  # fmt: skip
    return Case(shape=shape, workload=Workload(context=context))


@pytest.mark.parametrize(("a", "h", "s"), [(16, 1024, 2048), (96, 12288, 2048), (128, 20480, 2048)])
def test_a_classic_layer_keeps_34_h_and_5_a_s_bytes_per_token(a, h, s):
    """Korthikanti et al. 2022, equation 1: ``s b h (34 + 5 a s / h)`` bytes, 16 bits, dropout."""
    group = LayerGroup(
        count=1,
        attention=heads(a, a, h // a),
        feed_forward=FeedForward(d_model=h, d_ff=4 * h, gated=False),
    )
    parts = layer_activation_bytes(group, s, fused=False, dropout=True)
    assert parts["attention"] == 11 * h + 5 * a * s
    assert parts["feed_forward"] == 19 * h
    assert parts["norms"] == 4 * h
    assert sum(parts.values()) == pytest.approx(h * (34 + 5 * a * s / h))


def test_fused_attention_keeps_one_number_a_head_instead_of_scores():
    attention = heads(32, 8, 128)
    fused = attention_activation_bytes(attention, 8192)
    assert fused == attention_activation_bytes(attention, 131_072)
    # Input 4,096; queries 4,096; keys and values 1,024 each; output 4,096; 4 bytes a head.
    assert fused == 2 * (4096 + 4096 + 2 * 1024 + 4096) + 4 * 32
    unfused = attention_activation_bytes(attention, 8192, fused=False)
    assert unfused - fused == 32 * 8192 * 2 - 4 * 32


def test_qk_norm_keeps_queries_and_keys_twice():
    plain = attention_activation_bytes(heads(32, 8, 128), 4096)
    normed = attention_activation_bytes(heads(32, 8, 128, qk_norm=True), 4096)
    assert normed - plain == 2 * (32 + 8) * 128


def test_latents_save_nothing_in_training():
    """MLA rebuilds every head's keys and values, so it keeps more than GQA, and than its cache."""
    latent = Latent(d_model=4096, n_heads=32, kv_lora_rank=512)
    grouped = heads(32, 8, 128)
    assert attention_activation_bytes(latent, 4096) > attention_activation_bytes(grouped, 4096)
    # 4,096 + 2 * 512 + 64; queries and keys of 192; values and outputs of 128; 4 bytes a head.
    kept = 4096 + 1024 + 64 + 2 * 32 * 192 + 2 * 32 * 128
    assert attention_activation_bytes(latent, 4096) == 2 * kept + 4 * 32


def test_a_mixture_keeps_a_copy_for_each_expert_visited():
    dense = FeedForward(d_model=1024, d_ff=4096)
    assert feed_forward_activation_bytes(dense) == 2 * (1024 + 3 * 4096)
    moe = FeedForward(
        d_model=1024, d_ff=512, n_experts=64, experts_per_token=8, shared_d_ff=512
    )  # fmt: skip
    kept = 2 * (1024 + 8 * (1024 + 3 * 512) + 3 * 512) + 4 * 64
    assert feed_forward_activation_bytes(moe) == kept


def test_flops_are_three_times_a_forward_pass():
    """A product's backward pass is two products; the head runs for every token in training."""
    case = model(heads(16, 4, 64), context=512)
    flops = training_flops(case)
    forward = prefill_flops(case)
    every_token = 2.0 * 1000 * 1024 * (512 - 1)  # a prefill runs the output head once
    assert flops.total * 512 == pytest.approx(3.0 * (forward + every_token))


def test_flops_of_scores_are_those_of_the_flash_attention_benchmark():
    """4 s^2 h d / 2 forward where causal, 3.5 times that in all (benchmark_flash_attention.py)."""
    case = model(heads(16, 16, 64), context=8192, layers=1)
    flops = training_flops(case)
    forward = 4 * 8192**2 * 16 * 64 / 2
    assert (flops.scores + flops.recomputed) * 8192 == pytest.approx(3.5 * forward, rel=2e-4)
    assert flops.attention / flops.total < 1


def test_columns_equal_numbers():
    columns = heads(np.array([8, 16]), np.array([8, 4]), 64, d_model=1024)
    found = attention_activation_bytes(columns, 4096)
    for i, (n, kv) in enumerate(((8, 8), (16, 4))):
        assert found[i] == attention_activation_bytes(heads(n, kv, 64, d_model=1024), 4096)


def test_priority_training_reports_costs_and_what_it_trades():
    question = {"params": "70B", "context": "8k", "target": "8xh100-sxm", "d_model": 8192}
    report = recommend(Request(**question, n_layers=80, priority="training")).report
    assert recommend(Request(**question, n_layers=80)).report.training is None
    t, r = report.training, report.recommendation
    # Six per weight and token, and the scores; 8,192 tokens of 70B.
    assert t.flops_per_token == pytest.approx(6 * r.params_total, rel=0.15)
    assert t.attention_flops_per_token / t.flops_per_token == t.attention_share
    assert t.states_bytes == 16 * r.params_total
    assert t.activation_bytes_per_sequence == t.activation_bytes_per_token * 8192
    per_layer = sum(t.activation_bytes_per_token_per_layer.values())
    assert t.activation_bytes_per_token == pytest.approx(80 * per_layer)
    # A quarter of MHA's cached width at every size: 16 of 64 heads, where balanced has 8.
    assert r.n_kv_heads == 16
    assert any("Priority balanced would answer GQA 64/8 x 128" in text for text in t.trades)
    assert any("2x its cache" in text for text in t.trades)
    text = to_markdown(recommendation(report))
    assert "## In training" in text
    assert "2205.05198" in text


def test_an_encoder_trades_no_cache():
    report = recommend(
        Request(params="300M", context=512, arch="encoder", priority="training")
    ).report
    assert report.training.trades == ()
    assert report.training.flops_per_token > 0
