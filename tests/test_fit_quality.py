"""The loss curve in use is what the catalog's own evidence gives, with the error it admits."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from configurator.catalog.evidence import evidence
from configurator.core.quality import CURVE, ERROR_NATS, MLA_ERROR_NATS

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def script(pytestconfig):
    path = pytestconfig.rootpath / "benchmarks" / "fit_quality.py"
    spec = importlib.util.spec_from_file_location("fit_quality", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_quality"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["fit_quality"]


@pytest.fixture(scope="module")
def points(script):
    return script.points()


def test_points_are_21_comparisons_with_mha_of_five_studies(points):
    assert len(points) == len({p.id for p in points}) == 21
    assert len({p.study for p in points}) == 5
    known = {r.id: r for r in evidence()}
    for p in points:
        assert known[p.id].baseline.startswith("MHA")
        assert known[p.id].value is not None


def test_points_worked_out_by_hand(points):
    found = {p.id: p for p in points}
    # Zadouri et al. 2025, 433M: perplexity 12.845 with 4 KV heads, 12.979 with MHA's 16.
    four = found["zadouri2025-021"]
    assert four.x == 0.5
    assert four.net == four.gross == pytest.approx(np.log(12.845 / 12.979))
    # Shazeer 2019, WMT: already a log-perplexity, 1.439 against 1.424.
    assert found["shazeer2019-001"].net == pytest.approx(0.015)
    # Brandon et al. 2024: 13.36 against 13.15, with 126M of 1,008M weights gone.
    one = found["brandon2024-001"]
    assert one.gross == pytest.approx(np.log(13.36 / 13.15))
    body = 20 * (4 * 2048**2 + 3 * 2048 * 5472)
    freed = 20 * 2 * 2048 * 12 * 128
    lost = 406.4 * ((body - freed) ** -0.34 - body**-0.34)
    assert one.net == pytest.approx(one.gross - lost)
    assert abs(one.net) < 0.001


def test_constants_in_use_are_the_fit(script, points):
    """Each within one standard error; the curve within 0.001 nats where anything was measured."""
    fitted = script.fit(points)
    used = (CURVE.scale, CURVE.exponent, CURVE.offset)
    errors = script.standard_errors(points)
    assert np.all(np.abs(fitted - used) < errors)
    x = np.linspace(0.031, 0.7, 50)
    assert np.abs(script.curve(fitted, x) - script.curve(used, x)).max() < 0.001


def test_error_in_use_is_what_a_study_left_out_shows(script, points):
    left = script.leave_one_study_out(points)["all"]
    assert left == pytest.approx(ERROR_NATS, abs=0.0015)
    x, net = (np.array([getattr(p, k) for p in points]) for k in ("x", "net"))
    missed = net - script.curve(script.fit(points), x)
    assert np.sqrt(np.mean(missed**2)) < left  # what was fitted is always closer
    assert np.abs(missed).max() < 0.017


def test_fit_rises_as_the_cache_shrinks_whatever_study_is_left_out(script, points):
    x = np.linspace(0.04, 1.0, 40)
    for study in {p.study for p in points}:
        constants = script.fit([p for p in points if p.study != study])
        assert np.all(np.diff(script.curve(constants, x)) <= 0)


def test_latents_at_four_head_widths_are_level_with_mha_or_better(script):
    """None of eight loses more than its error; the mean is a gain, which is not counted."""
    nets = [p.net for p in script.points(script.LATENTS)]
    assert max(nets) <= MLA_ERROR_NATS
    assert -MLA_ERROR_NATS < np.mean(nets) < 0


def test_script_prints_points_fit_and_error(script, capsys):
    assert script.main([]) == 0
    text = capsys.readouterr().out
    for words in ("zadouri2025-021", "a study left out", "in use as the error: 0.016", "MLA at"):
        assert words in text
