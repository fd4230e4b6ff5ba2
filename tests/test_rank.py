"""The order of candidates: what each principle decides, and what memory may change."""

from __future__ import annotations

import pytest

from configurator import Request, recommend
from configurator.core.report import Report


def ask(**request: object) -> Report:
    return recommend(Request(**request)).report


def heads(**request: object) -> tuple[str, int, int, int]:
    r = ask(allow_decoupled_heads=True, **request).recommendation
    return r.projection, r.n_heads, r.n_kv_heads, r.d_head


@pytest.mark.parametrize(
    ("width", "layers", "params", "wanted"),
    [
        (896, 24, "494M", ("GQA", 14, 2, 64)),  # Qwen2 0.5B: 64 does not divide into eights
        (1536, 28, "1.54B", ("GQA", 12, 2, 128)),  # Qwen2 1.5B
        (3584, 28, "7.6B", ("GQA", 28, 4, 128)),  # Qwen2 7B
        (4096, 32, "8B", ("GQA", 32, 8, 128)),  # Llama 3 8B
        (2688, 40, "4B", ("GQA", 24, 4, 128)),  # 21 heads are awkward: rounded up to 24
    ],
)
def test_heads_fill_the_width_unless_the_count_is_awkward(width, layers, params, wanted):
    found = heads(params=params, d_model=width, n_layers=layers, context="32k")
    assert found == wanted


def test_tensor_parallelism_rounds_heads_up():
    """28 heads do not split over 8 ranks; Qwen2's 28 were served on 1, 2 or 4."""
    found = heads(params="7.6B", d_model=3584, n_layers=28, target="8xh100-sxm")
    assert found == ("GQA", 32, 8, 128)


def test_mla_heads_are_the_power_of_two_at_or_above_the_width_over_128():
    """7,168 / 128 = 56: 64 heads as Kimi K2 has (arXiv 2507.20534); DeepSeek-V3 has 128."""
    report = ask(
        params="1026B", active_params="32B", d_model=7168, n_layers=61, context="128k",
        target="3x8xh200-sxm", tensor_parallel=1, allow_decoupled_heads=True,
    )  # fmt: skip
    assert (report.recommendation.projection, report.recommendation.n_heads) == ("MLA", 64)
    assert any("128" in text and "2507.20534" in text for text in report.why)


def test_kv_heads_given_up_for_memory_stay_a_power_of_two():
    """40 heads divide by 5 as well, but kernels and ranks want powers of two."""
    found = heads(params="32.8B", d_model=5120, n_layers=64, context="40k", target="h100-sxm")
    assert found == ("GQA", 40, 4, 128)


def test_memory_lowers_kv_heads_as_far_as_loss_was_measured():
    """7B at 128k: 16 GiB of cache at 8 KV heads, 4 GiB at 2, where the cached width is 0.125."""
    report = ask(params="7B", context="128k", target="rtx-4090", d_model=4096, n_layers=32)
    assert (report.recommendation.projection, report.recommendation.n_kv_heads) == ("GQA", 2)
    assert report.fits


def test_lighter_weights_are_preferred_to_heads_nobody_measured():
    question = {"params": "32B", "context": "128k", "d_model": 5120, "n_layers": 64}
    report = ask(**question, target="h100-sxm")
    assert (report.recommendation.projection, report.recommendation.n_kv_heads) == ("GQA", 8)
    assert not report.fits
    assert any("8 bits" in text for text in report.why)
    assert any("with --weight-dtype int8 it fits" in text for text in report.remedies)
    assert any("fits as it is" in text for text in report.remedies)
    assert ask(**question, target="h100-sxm", weight_dtype="int8").fits
    assert ask(**question, target="h100-sxm", priority="memory").fits


def test_where_lighter_weights_do_not_help_whatever_fits_is_taken():
    """7B at 256k on 24 GB: 8 KV heads need 32 GiB, two 8; a latent of 288 needs 4.5."""
    report = ask(params="7B", context="256k", target="rtx-4090", d_model=4096, n_layers=32)
    assert report.fits
    assert report.recommendation.projection == "MLA"


def test_memory_does_not_narrow_heads_where_lighter_weights_would_do():
    """1,026B over 16 H200 leave 3 GiB a device: not a reason for 224 heads of 64."""
    report = ask(
        params="1026B", active_params="32B", d_model=7168, n_layers=61, context="128k",
        target="2x8xh200-sxm", allow_decoupled_heads=True,
    )  # fmt: skip
    assert (report.recommendation.projection, report.recommendation.d_head) == ("MLA", 128)
