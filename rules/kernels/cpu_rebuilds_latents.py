"""On CPUs, attention keeps keys and values of one width rather than a latent.

## What

MLA on a CPU server or board.

## Why

PyTorch's flash path on CPU wants queries, keys and values of one width; MLA's 192 with values of
128, and its absorbed form of 576 with 512, fall to the math path and the full score matrix.
llama.cpp has grouped kernels for the latent on GPUs; on CPU the memory saved is real, the speed
is not in proportion: decoding in bf16 on a two-core Xeon, the best of our formulations got
through a latent cache at 7.0 GB/s and through keys and values at 17.4 GB/s.

## Instead

GQA with few KV heads, or MLA for its memory with the time measured first.

## Source

pytorch/pytorch aten/src/ATen/native/transformers/sdp_utils_cpp.cpp at 02315a42; measured
here: outputs/measurements/calibration_2-core-intel-xeon_2026-12-01.md
"""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity
from configurator.core.units import Truth
from rules._ask import is_latent, latent
from rules._devices import is_cpu, name


def applies(case: Case) -> bool:
    return is_cpu(case)


def holds(case: Case) -> Truth:
    return not is_latent(case)


def says(case: Case) -> str:
    a = latent(case)
    return (
        f"MLA on {name(case)} runs keys of {a.d_head} and values of {a.v_head_dim} in PyTorch's "
        "math path; use GQA, or measure with bench first"
    )


CPU = example_device(vendor="AMD", kind="cpu-server", architecture="x86-cpu")

rule = Rule(
    severity=Severity.ADVICE,
    evidence=Evidence.MEASURED_HERE,
    applies=applies,
    holds=holds,
    says=says,
    passes=lambda: (example(device=CPU),),
    fails=lambda: (example(kv_lora_rank=512, device=CPU),),
)
