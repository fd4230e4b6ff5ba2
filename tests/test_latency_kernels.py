"""The table of kernel rules, the names that engines use, and refits from rows of one's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from configurator.catalog.coefficients import class_coefficients
from configurator.catalog.targets import device, devices
from configurator.core.errors import UsageError
from configurator.core.kernel_names import from_engine
from configurator.core.kernels import KERNELS, choose, kernel
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.latency import predict_latency
from configurator.core.latency_priors import PRIORS, Coefficients, neutral
from configurator.core.latency_refit import refit, scale_and_offset

GQA = GroupedQuery(d_model=4096, n_heads=32, n_kv_heads=8, d_head=128)
MLA = Latent(d_model=4096, n_heads=32, kv_lora_rank=512)


@pytest.mark.parametrize(
    ("name", "kv", "family"),
    [
        ("a100-sxm-80gb", "bf16", "fa2"),
        ("a100-sxm-80gb", "fp8", "flashinfer"),  # FlashAttention-2 has no fp8 cache
        ("rtx-4090", "bf16", "fa2"),
        ("h100-sxm", "fp8", "fa3"),
        ("b200-sxm", "bf16", "trtllm_gen"),
        ("rtx-pro-6000-server", "q8_0", "flashinfer"),
        ("arc-pro-b60", "bf16", "intel"),
        ("t4", "fp16", "unknown"),  # FlashAttention-2 needs Ampere
        ("mi300x", "bf16", "unknown"),
    ],
)
def test_usual_kernel_of_a_device(name, kv, family):
    assert choose(GQA, device(name), kv).name == family


@pytest.mark.parametrize(
    ("name", "family"),
    [("a100-sxm-80gb", "mla_generic"), ("h100-sxm", "mla_hopper"), ("b200-sxm", "mla_unknown")],
)
def test_usual_kernel_for_a_latent_cache(name, family):
    assert choose(MLA, device(name)).name == family
    rebuilt = replace(MLA, rebuilt=True)  # full keys and values per head are no latent
    assert not choose(rebuilt, device(name)).latent


@pytest.mark.parametrize(
    ("framework", "name", "op", "target", "kv", "family"),
    [
        ("vllm", "vllm_flash_attn", "decode", "a100-sxm-80gb", "bf16", "fa2"),
        ("vllm", "vllm_flash_attn_fa3", "decode", "h200-sxm", "bf16", "fa3"),
        ("vllm", "vllm_flash_attn_fa4", "prefill", "h100-sxm", "bf16", "fa4"),
        ("vllm", "vllm_flashinfer_fidecode", "decode", "l40s", "fp8", "flashinfer"),
        ("vllm", "vllm_flashinfer_flashinfertrtllmapidecode", "decode", "b200-sxm", "fp8",
         "trtllm_gen"),
        ("vllm", "vllm_triton_attn", "decode", "l40s", "fp8", "triton"),
        ("vllm", "vllm_flash_attn", "decode", "arc-pro-b60", "fp8", "intel"),
        ("sglang", "fa3", "decode", "h100-sxm", "bf16", "fa3_sglang"),
        ("sglang", "trtllm_mha", "decode", "gb200", "fp8", "trtllm_gen"),
        ("sglang", "flashinfer", "decode", "b200-sxm", "bf16", "flashinfer"),
        ("sglang", "flash_attention", "decode_mla", "h100-sxm", "fp8", "mla_sglang"),
        ("sglang", "trtllm_mla", "decode_mla", "b200-sxm", "fp8", "mla_unknown"),
        ("sglang", "triton", "decode_mla", "l40s", "bf16", "mla_unknown"),
        ("trtllm", "torch_flow", "decode", "h100-sxm", "bf16", "trtllm"),
        ("trtllm", "torch_flow", "decode", "h100-sxm", "fp8", "trtllm_hopper_fp8"),
        ("trtllm", "torch_flow", "decode", "gb200", "fp8", "trtllm_gen"),
        ("trtllm", "default", "decode_mla", "l40s", "fp8", "mla_generic"),
        ("vllm", "something_new", "decode", "h100-sxm", "bf16", "unknown"),
    ],
)  # fmt: skip
def test_engines_names_lead_to_families(framework, name, op, target, kv, family):
    assert from_engine(framework, name, op, device(target), kv).name == family


def test_flash_attention_2_folds_groups_without_a_window():
    # flash_api.cpp: one query, more query than KV heads, no window
    fa2 = kernel("fa2")
    group, window = np.array([1, 2, 8, 8]), np.array([0, 0, 0, 128])
    assert fa2.takes(group, window).tolist() == [False, True, True, False]
    assert not KERNELS[fa2.otherwise].splits
    assert not KERNELS[fa2.otherwise].folds


def test_tensorrt_llm_leaves_xqa_outside_groups_2_to_32():
    taken = kernel("trtllm").takes(np.array([1, 2, 32, 33, 64]), np.zeros(5))
    assert taken.tolist() == [False, True, True, False, False]
    assert kernel("trtllm").otherwise == "mmha"


def test_every_kernel_says_its_source_unless_nobody_timed_it():
    for k in KERNELS.values():
        assert k.title
        assert k.source or k.name in ("unknown", "mla_unknown")
        assert not k.otherwise or KERNELS[k.otherwise].otherwise == ""


def test_coefficient_is_the_base_times_its_factors():
    target = replace(
        device("h100-sxm"),
        coefficients={"decode.share": 0.8, "decode.share.fa3": 1.1, "decode.share.fp8": 0.9},
    )
    assert Coefficients(target, ("fa3",))("decode.share") == pytest.approx(0.88)
    assert Coefficients(target, ("fa3",), True)("decode.share") == pytest.approx(0.792)
    assert Coefficients(target)("decode.share") == pytest.approx(0.8)


def test_neutral_priors_hold_no_opinion_on_families():
    assert all(p.value == 1.0 for k, p in neutral().items() if k.count(".") > 1)
    assert neutral()["decode.share"] == PRIORS["decode.share"]


@pytest.mark.parametrize("architecture", sorted({d.architecture for d in devices()}))
def test_coefficient_files_hold_known_positive_keys(architecture):
    for key, value in class_coefficients(architecture).items():
        known = key in PRIORS or key.startswith(("error.", "step.share."))
        assert known, f"{key} has no meaning in latency_priors.py"
        assert value > 0


def test_shares_of_bandwidth_are_below_one():
    values = class_coefficients("sm_90")
    for family in ("fa2", "fa3", "flashinfer", "triton", "xqa", "xqa_hopper", "mmha"):
        assert 0.5 < values["decode.share"] * values[f"decode.share.{family}"] < 0.95


def test_classes_differ_by_architecture():
    assert class_coefficients("cdna3")["roofline.share"] == 0.63
    assert class_coefficients("apple-gpu")["roofline.share"] == 0.70
    assert class_coefficients("xe2")["decode.floor.intel"] > 5
    assert "decode.floor.intel" not in class_coefficients("sm_90")


def test_refit_recovers_scale_and_offset_of_made_up_rows():
    target, rng = device("h100-sxm"), np.random.default_rng(1)
    context, batch = rng.integers(16, 65536, 24), rng.integers(1, 64, 24)
    predicted = predict_latency(GQA, target, context=context, batch=batch, warm=True)
    found = refit(GQA, target, 30e-6 + 1.4 * predicted, context=context, batch=batch)
    assert found["own.decode.scale"] == pytest.approx(1.4, rel=0.02)
    assert found["own.decode.offset_s"] == pytest.approx(30e-6, rel=0.1)
    assert found["own.decode.error"] < 0.02
    own = replace(target, coefficients={**target.coefficients, **found})
    again = predict_latency(GQA, own, context=context, batch=batch, warm=True)
    assert again == pytest.approx(30e-6 + 1.4 * predicted, rel=0.03)
    twice = refit(GQA, own, 30e-6 + 1.4 * predicted, context=context, batch=batch)
    assert twice == pytest.approx(found)  # a refit starts from the class, not from the last one


def test_refit_with_noise_states_its_error():
    target, rng = device("l40s"), np.random.default_rng(2)
    context, batch = rng.integers(16, 65536, 24), rng.integers(1, 64, 24)
    predicted = predict_latency(GQA, target, context=context, batch=batch, warm=True)
    noise = np.exp(rng.normal(0, 0.1, 24))
    found = refit(GQA, target, (8e-6 + 0.8 * predicted) * noise, context=context, batch=batch)
    assert found["own.decode.scale"] == pytest.approx(0.8, rel=0.15)
    assert 0.08 < found["own.decode.error"] < 0.25


def test_refit_keeps_the_class_model_where_it_is_as_good():
    target, context = device("h100-sxm"), np.arange(1, 25) * 1000
    predicted = predict_latency(GQA, target, context=context, warm=True)
    found = refit(GQA, target, predicted, context=context)
    assert found["own.decode.scale"] == pytest.approx(1.0, abs=1e-6)
    assert found["own.decode.offset_s"] == pytest.approx(0.0, abs=1e-9)


def test_refit_refuses_what_it_cannot_use():
    target = device("h100-sxm")
    with pytest.raises(UsageError, match="too few"):
        refit(GQA, target, [1e-5, 2e-5])
    with pytest.raises(UsageError, match="above zero"):
        refit(GQA, target, [1e-5] * 7 + [0.0])
    with pytest.raises(UsageError, match="no 16-bit rate"):
        refit(GQA, replace(target, flops_per_s={}), [1e-5] * 8)


def test_scale_and_offset_of_a_line():
    p = np.array([1.0, 2.0, 5.0, 9.0, 20.0, 50.0])
    scale, offset = scale_and_offset(p, 3.0 + 2.0 * p)
    assert scale == pytest.approx(2.0, rel=0.02)
    assert offset == pytest.approx(3.0, rel=0.05)
