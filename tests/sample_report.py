"""Reports made by hand for the renderers' tests: figures come from the core, words are fixed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from configurator.assemble import option, rule_reports
from configurator.core.examples import example, example_device
from configurator.core.report import (
    Initialization,
    LatencyReport,
    Precedent,
    Report,
    Sensitivity,
    TestHook,
)


def sample(**changes: Any) -> Report:
    """An 8-billion-parameter decoder with 32 query and 8 KV heads; Llama 3 8B's shape."""
    device = example_device(name="example-gpu", title="Example GPU 80 GiB")
    case = example(context=32768, batch=1, device=device)
    here = option(case)
    report = Report(
        request={
            "params": 8_000_000_000,
            "context": 32768,
            "batch": 1,
            "priority": "balanced",
            "kv_dtype": "bf16",
            "target": "example-gpu",
        },
        recommendation=replace(here.recommendation, reason="8 KV heads keep a quarter of MHA."),
        cache=here.cache,
        memory=here.memory,
        latency=here.latency,
        sensitivity=(
            Sensitivity(
                input="context",
                asked=32768,
                direction="above",
                flips_at=524288,
                factor=16.0,
                to="GQA 32/4 x 128",
                message="from a context of 524,288 (16 x) on it would be GQA 32/4 x 128",
            ),
        ),
        quality=here.quality,
        initialization=Initialization(
            xavier={"q": 0.015625, "o": 0.015625},
            kaiming={"q": 0.0221},
            kaiming_linear={"q": 0.015625},
            residual_scaled={"o": 0.001953},
            recommended={"q": 0.015625, "o": 0.001953},
            bias="none",
            qk_norm=False,
            advice="Xavier for Q, K and V; the output scaled by depth; no biases.",
            sources=("Glorot and Bengio 2010",),
        ),
        test_hook=TestHook(
            task="induction",
            description="A B ... A -> B on a repeated random segment.",
            threshold=0.95,
            layers=2,
            control="one layer must fail",
            command="mha-configurator probe --params 8B",
        ),
        alternatives=(
            option(
                example(context=32768, n_kv_heads=4, device=device),
                why_not="half the cache for 0.02 nats more",
                on_front=True,
            ),
            option(
                example(context=32768, kv_lora_rank=512, device=device),
                why_not="a latent is copied to every rank",
                on_front=True,
            ),
        ),
        rules=rule_reports(case),
        precedents=(
            Precedent(
                id="meta-llama-3-8b",
                name="Llama 3 8B",
                org="Meta",
                year=2024,
                params_total=8_030_261_248,
                projection="GQA",
                n_heads=32,
                n_kv_heads=8,
                d_head=128,
                d_model=4096,
                n_layers=32,
                difference="the same geometry",
                source="config.json",
            ),
        ),
        measurements=(),
        warnings=("asked for fp4, which example-gpu lacks | used fp8",),
        why=("in a tie of expected loss, more sequences fit",),
        target={"name": "example-gpu", "title": "Example GPU 80 GiB", "count": 1},
        fits=True,
        remedies=(),
        command="mha-configurator recommend --params 8B --context 32k --target example-gpu",
        version="0.0.0",
    )
    return replace(report, **changes)


def unknown_latency() -> LatencyReport:
    """What a target without rates gets."""
    return LatencyReport(
        decode_s=None, prefill_s=None, bound="unknown", regime="no rate is known", error=None
    )
