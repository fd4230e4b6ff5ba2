"""Coefficients from timings: what made the timings is found again, and predictions use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from configurator.bench import calibrate as calibrate_module
from configurator.bench.calibrate import Checked, calibrate, scores
from configurator.bench.calibration_points import check_points, fit_points
from configurator.bench.ceilings import Ceilings
from configurator.bench.fit import coefficients, kendall_tau, least_squares, sample
from configurator.bench.machine import Machine
from configurator.bench.points import Point, attention_from, attention_to
from configurator.core.errors import MissingError
from configurator.core.examples import example_device
from configurator.core.latency import parts, predict_latency
from configurator.core.report import Measurement
from configurator.core.shapes import geometry
from configurator.host import Profile

GQA = geometry(d_model=4096, n_heads=32, n_kv_heads=8)
MLA = geometry(d_model=4096, n_heads=32, kv_lora_rank=512)
TRUE = {"floor": 1e-4, "bytes": 2e10, "flops": 4e11}


def test_work_of_one_decode_step():
    # 2 x 8 heads x 128 values x 2 bytes x 1000 tokens; 4 FLOPs x 32 heads x 128 x 1000
    found = sample(Point(attention=attention_to(GQA), context=1000), 1.0)
    assert (found.bytes_moved, found.flops) == (4_096_000, 16_384_000)
    # the latent: (512 + 64) x 2 bytes; 2 x 32 x (576 + 512) FLOPs a token
    found = sample(Point(attention=attention_to(MLA), context=1000), 1.0)
    assert (found.kind, found.bytes_moved, found.flops) == ("latent", 1_152_000, 69_632_000)


def test_work_of_a_prompt():
    # causal: 1000 x 1001 / 2 pairs x 4 x 32 x 128 FLOPs; keys and values once in 16 bit
    found = sample(Point(attention=attention_to(GQA), context=1000, phase="prefill"), 1.0)
    assert found.flops == 500_500 * 4 * 32 * 128
    assert found.bytes_moved == 1000 * 8 * 256 * 2
    # a latent is expanded to all heads: 192 + 128 wide
    found = sample(Point(attention=attention_to(MLA), context=1000, phase="prefill"), 1.0)
    assert found.bytes_moved == 1000 * 32 * 320 * 2


def made(point, noise=0.0, seed=0):
    s = sample(point, 1.0)
    seconds = TRUE["floor"] + s.bytes_moved / TRUE["bytes"] + s.flops / TRUE["flops"]
    return replace(s, seconds=seconds * (1 + noise * np.random.default_rng(seed).normal()))


def test_what_made_the_timings_is_found_again():
    samples = [made(p) for p in fit_points()]
    found = coefficients(samples)
    for phase, kind, dtype in {(s.phase, s.kind, s.dtype) for s in samples if s.dtype == "bf16"}:
        stem = f"host.{phase}.{kind}.{dtype}"
        assert found[f"{stem}.floor_s"] == pytest.approx(1e-4, rel=1e-3)
        assert found[f"{stem}.flops_per_s"] == pytest.approx(4e11, rel=1e-3)
    assert found["host.decode.kv.bf16.bytes_per_s"] == pytest.approx(2e10, rel=1e-3)
    assert found["host.calibrated"] == 1.0


def test_one_wild_sample_changes_little():
    samples = [made(p) for p in fit_points() if (p.phase, p.kv_dtype) == ("decode", "bf16")]
    samples[3] = replace(samples[3], seconds=10 * samples[3].seconds)
    found = coefficients(samples)
    assert found["host.decode.kv.bf16.bytes_per_s"] == pytest.approx(2e10, rel=0.15)


@settings(deadline=None, max_examples=40)
@given(
    x=st.lists(st.sampled_from([0.0, 1e-3, 1.0, 30.0]), min_size=3, max_size=3).filter(any),
    seed=st.integers(0, 99),
)
def test_no_coefficient_is_negative_and_exact_data_is_met(x, seed):
    features = np.random.default_rng(seed).uniform(0.1, 10, (12, 3)) * [1, 1e-6, 1e6]
    target = features @ (np.array(x) / [1, 1e-6, 1e6])
    found = least_squares(features, target)
    assert np.all(found >= 0)
    np.testing.assert_allclose(features @ found, target, rtol=1e-4)


def test_timings_of_nothing_are_refused():
    with pytest.raises(ValueError, match="above zero"):
        least_squares(np.ones((2, 1)), np.array([1.0, 0.0]))


def test_kendall_tau_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.integers(0, 6, 20), rng.integers(0, 6, 20)
        assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)


# --- the prediction ------------------------------------------------------------------------


def calibrated(**more):
    keys = {
        "host.calibrated": 1.0,
        "host.decode.kv.bf16.floor_s": 1e-4,
        "host.decode.kv.bf16.bytes_per_s": 2e10,
        "host.decode.kv.bf16.flops_per_s": 4e11,
        "host.prefill.kv.bf16.floor_s": 2e-4,
        "host.prefill.kv.bf16.flops_per_s": 5e11,
    }
    return example_device(name="host", coefficients={**keys, **more})


def test_a_calibrated_machine_predicts_from_its_own_rates():
    # 1e-4 + 8192 x 4096 B / 2e10 + 8192 x 16384 FLOPs / 4e11
    expected = 1e-4 + 8192 * 4096 / 2e10 + 8192 * 16384 / 4e11
    assert predict_latency(GQA, calibrated(), context=8192) == pytest.approx(expected)
    column = predict_latency(GQA, calibrated(), context=np.array([4096, 8192]))
    assert column[1] == pytest.approx(expected)
    assert column[0] < column[1]
    pairs = 1000 * 1001 / 2
    prompt = predict_latency(GQA, calibrated(), phase="prefill", context=1000)
    assert prompt == pytest.approx(2e-4 + pairs * 4 * 32 * 128 / 5e11)


def test_a_window_bounds_what_is_read():
    full = predict_latency(GQA, calibrated(), context=1024)
    assert predict_latency(GQA, calibrated(), context=1 << 20, window=1024) == full


def test_a_narrow_cache_is_widened_at_each_step():
    plain = calibrated()
    widened = calibrated(**{"host.convert.fp8.elements_per_s": 1e9})
    found = parts(GQA, widened, context=8192, kv_dtype="fp8")
    # 8192 x 2048 values at 1e9 a second, beside half the bytes of bf16
    assert found.extra == pytest.approx(8192 * 2048 / 1e9)
    assert found.total == pytest.approx(
        predict_latency(GQA, plain, context=8192, kv_dtype="fp8") + 8192 * 2048 / 1e9
    )


def test_a_kind_that_was_not_measured_is_unknown():
    assert np.isnan(predict_latency(MLA, calibrated(), context=8192))


# --- the run -------------------------------------------------------------------------------


def test_checked_points_are_not_fitted_ones_and_are_enough():
    fitted, checked = fit_points(), check_points()
    assert not {p.case + p.phase for p in fitted} & {p.case + p.phase for p in checked}
    assert len(checked) >= 24
    phases = {p.phase for p in checked}
    assert phases == {"decode", "prefill"}


def test_scores_by_phase():
    rows = [
        Checked(case=str(i), phase="decode", formulation="", predicted_s=p, measured_s=m,
                spread_s=0.0, flags=())
        for i, (p, m) in enumerate([(1.0, 1.0), (2.0, 2.2), (3.0, 2.0)])
    ]  # fmt: skip
    tau, error = scores(rows)
    assert tau == {"decode": pytest.approx(1 / 3), "all": pytest.approx(1 / 3)}
    assert error["decode"] == pytest.approx(1 - 2 / 2.2)


@pytest.fixture
def simulated(monkeypatch):
    """A machine that takes what its true rates say, so that a calibration can be checked."""
    ceilings = Ceilings(
        read_bytes_per_s=2.5e10, copy_bytes_per_s=1e10, flops_per_s={"fp32": 1e11, "bf16": 1e12},
        overhead_s=1e-6, reads={}, working_set_bytes=1 << 30,
    )  # fmt: skip
    machine = Machine(torch_device="cpu", target=example_device(), ceilings=ceilings, cache_bytes=0)
    calls = []

    def rows_of(point, here):
        calls.append(point)
        blank = {"cache_bytes_predicted": 1, "cache_bytes_measured": 1, "predicted_s": None,
                 "bytes_per_s": None, "share_of_bandwidth": None}  # fmt: skip
        seed = len(calls)
        for name, factor in (("slow", 3.0), ("fast", 1.0), ("middle", 2.0)):
            if not point.formulations or name in point.formulations:
                yield Measurement(
                    case=point.case, formulation=name, path="", phase=point.phase, **blank,
                    measured_s=factor * made(point, 0.02, seed).seconds, spread_s=0.0, status="ok",
                )  # fmt: skip

    monkeypatch.setattr(calibrate_module, "rows_of", rows_of)
    monkeypatch.setattr(calibrate_module, "_machine", lambda device: machine)
    return calls


def plainly(points):
    return [replace(p, formulations=()) for p in points]


def test_a_calibration_finds_the_machine_and_knows_its_error(simulated):
    found = calibrate("cpu", points=plainly(fit_points()), checks=plainly(check_points()))
    assert found.tau["all"] > 0.95
    assert found.error["all"] < 0.05
    assert set(found.profile.error) == {"decode", "prefill"}
    assert {c.formulation for c in found.checked} == {"fast"}
    assert len(found.checked) == len(check_points())
    assert found.profile.coefficients["host.decode.kv.bf16.bytes_per_s"] == pytest.approx(
        2e10, rel=0.1
    )
    # the first pass tries everything, later ones the two fastest
    assert {p.formulations for p in simulated} == {(), ("fast", "middle")}


def test_a_busy_machine_is_not_calibrated(simulated, monkeypatch):
    real = calibrate_module.rows_of

    def disturbed(point, here):
        return (replace(row, status="disturbed") for row in real(point, here))

    monkeypatch.setattr(calibrate_module, "rows_of", disturbed)
    with pytest.raises(MissingError, match="run it when the machine is quiet"):
        calibrate("cpu", points=plainly(fit_points()[:2]), checks=())
    with pytest.raises(MissingError, match="no memory for it, or no time"):
        calibrate("cpu", points=plainly(fit_points()[:2]), checks=(), budget_s=0)


def test_passes_mix_fitted_and_checked_points(simulated):
    calibrate("cpu", points=plainly(fit_points()), checks=plainly(check_points()))
    cases = {p.case for p in check_points()}
    early = simulated[: len(simulated) // 6]
    assert any(p.case in cases for p in early)
    assert any(p.case not in cases for p in early)


def test_a_profile_predicts_what_its_machine_does(simulated):
    found = calibrate("cpu", points=plainly(fit_points()), checks=())
    assert found.checked == ()
    assert isinstance(found.profile, Profile)
    device = example_device(coefficients=dict(found.profile.coefficients))
    for point in check_points():
        predicted = predict_latency(
            attention_from(point.attention), device, phase=point.phase, batch=point.batch,
            context=point.context,
        )  # fmt: skip
        assert predicted == pytest.approx(made(point).seconds, rel=0.15)
