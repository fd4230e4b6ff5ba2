"""The Python entrance: whatever is handed in, an answer or one short ``UsageError``."""

from __future__ import annotations

from typing import Any

import pytest

from configurator import (
    GeometryRequest,
    Request,
    UsageError,
    audit,
    device,
    model,
    predict_latency,
    recommend,
)
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.units import (
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    parse_params,
    parse_seconds,
    parse_tokens,
)
from configurator.interop.export import export, subject_from

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 96, "vocab_size": 100,
}  # fmt: skip
HEADS = GroupedQuery(d_model=4096, n_heads=32, n_kv_heads=8, d_head=128)
# The second is too long for Python to turn into text at all.
HUGE = (10**4000, 10**5000, -(10**5000))


def refused(ask: Any, *words: Any, **names: Any) -> str:
    """The one line of a refusal."""
    with pytest.raises(UsageError) as caught:
        ask(*words, **names)
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    assert len(said) <= 300
    return said


@pytest.mark.parametrize(
    "source", [None, 5, b"x", [], 1.5, True, object()], ids=lambda s: type(s).__name__
)
def test_a_model_is_named_by_text_or_a_mapping(source: Any) -> None:
    for ask in (audit, subject_from):
        assert "named by text or a mapping" in refused(ask, source)
    assert "unknown" in refused(model, source)


@pytest.mark.parametrize(
    "question",
    [
        {"batch": "4"}, {"batch": None}, {"batch": 1.5}, {"batch": True}, {"batch": []},
        {"tensor_parallel": "2"}, {"tensor_parallel": 1.5}, {"page_size": "16"},
        {"page_size": None}, {"device": "h100-sxm"}, {"device": 5}, {"cache_mode": None},
        {"cache_mode": 5}, {"contxt": 4096}, {"context": []}, {"kv_budget": []},
    ],
    ids=str,
)  # fmt: skip
def test_an_audit_refuses_what_is_no_number(question: dict[str, Any]) -> None:
    (name,) = question
    said = refused(audit, LLAMA, **question)
    assert name.replace("_", "-") in said or name in said


def test_an_audits_target_is_a_requests() -> None:
    """A described device and this machine too, as on the command line."""
    described = audit(LLAMA, memory="24GiB", bandwidth=1000)
    assert described.target == "custom"
    assert (
        described.kv_budget_bytes
        == audit(LLAMA, device=described.case.device if described.case else None).kv_budget_bytes
    )
    assert audit(LLAMA, target="Host").target == "host"
    assert audit(LLAMA, target="4xh100-sxm").tensor_parallel == 4
    assert "needs its bandwidth" in refused(audit, LLAMA, memory="24GiB")


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert audit(LLAMA, batch=numpy.int64(3), context=numpy.int64(64)).kv_bytes_at_context == (
        3 * 64 * 2 * 2 * 64 * 2  # sequences, tokens, layers, keys and values, width, bytes
    )


@pytest.mark.parametrize("value", HUGE, ids=["4,000 digits", "5,000 digits", "below zero"])
def test_a_huge_number_is_not_echoed(value: int) -> None:
    for name in ("context", "batch", "tensor_parallel", "page_size", "source_len", "kv_budget"):
        assert "10^40" in refused(audit, LLAMA, **{name: value})
    for name in ("params", "context", "batch", "d_head", "memory", "bandwidth", "tflops", "d_model",
                 "top", "window", "full_every", "vocab_size", "tensor_parallel"):  # fmt: skip
        assert "10^40" in refused(Request, **{"params": "7B", name: value})
    assert "10^40" in refused(GeometryRequest, d_model=value, n_heads=4)
    assert "10^40" in refused(device, "h100-sxm", value)
    for parse in (parse_bandwidth, parse_bytes, parse_flops, parse_params, parse_seconds,
                  parse_tokens):  # fmt: skip
        assert "10^40" in refused(parse, value)
    for name in ("batch", "context", "query_len"):
        refused(predict_latency, HEADS, device("h100-sxm"), **{name: value})


def test_a_long_name_is_cut() -> None:
    refused(Request, params="7B", **{"x" * 5000: 1})
    refused(Request, params="7B", target="x" * 5000)
    assert str(UsageError(f"{'x' * 5000} is too long")) == f"{'x' * 40}... is too long"
    assert len(str(UsageError("x " * 5000))) == 700


@pytest.mark.parametrize("value", [True, 5, {}, [5]], ids=str)
def test_a_projection_that_is_no_name(value: Any) -> None:
    assert "projection" in refused(Request, params="7B", projection=value)


def test_a_latency_needs_an_attention_and_a_device() -> None:
    answer = recommend(Request(params="125M"))
    for attention in (None, "gqa", answer):
        assert "attention" in refused(predict_latency, attention, device("h100-sxm"))
    for where in (None, "h100-sxm", 5):
        assert "device" in refused(predict_latency, HEADS, where)


def test_an_export_needs_a_subject_and_a_format() -> None:
    assert "subject" in refused(export, None, "vllm")
    assert "unknown format" in refused(export, subject_from(LLAMA), None)


def test_a_benchmark_needs_a_report() -> None:
    pytest.importorskip("torch")
    from configurator.bench import measure

    assert "report None" in refused(measure, None)
    assert "geometries are missing" in refused(measure, [])
    assert "geometries are missing" in refused(measure, [5])
