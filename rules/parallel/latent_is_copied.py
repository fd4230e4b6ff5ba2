"""A rank keeps no more for MLA than grouped attention would leave it.

## What

MLA's cache per rank is no larger than that of GQA with 8 KV heads of the same width.

## Why

All heads share the latent, so tensor parallelism cannot split it: every rank stores and reads
4.5 head widths a token, while eight KV heads shrink to 2 on eight ranks. MLA saves bytes at one
or two ranks and loses from four on.

## Instead

Data-parallel attention with the experts spread (lower ``--tensor-parallel``), or GQA.

## Source

Zadouri et al. 2025 (arXiv 2505.21487); vllm-project/vllm vllm/config/model.py; sglang
data-parallelism documentation
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.columns import maximum
from configurator.core.examples import example
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Count, Truth
from rules._ask import is_latent, latent, several_ranks


def _grouped_elements(case: Case) -> Count:
    ranks = maximum(case.workload.tensor_parallel, 1)
    return 2 * maximum(8 // ranks, 1) * latent(case).qk_nope_head_dim


def applies(case: Case) -> Truth:
    return is_latent(case) and several_ranks(case)


def holds(case: Case) -> Truth:
    return latent(case).latent_width <= _grouped_elements(case)


def says(case: Case) -> str:
    a, ranks = latent(case), case.workload.tensor_parallel
    return (
        f"on {ranks} ranks each keeps the whole latent, {a.latent_width} values a token and layer, "
        f"where GQA-8 of {a.qk_nope_head_dim} keeps {_grouped_elements(case)}; use tensor "
        "parallelism 1 or 2 with data-parallel attention, or GQA"
    )


rule = Rule(
    severity=Severity.WARNING,
    evidence=Evidence.STRONG,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(kv_lora_rank=512, tensor_parallel=2),),
    fails=lambda: (example(kv_lora_rank=512, tensor_parallel=8),),
)
