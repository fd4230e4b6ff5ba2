"""Published ablations: complete, consistent with themselves, and a few of them by heart."""

from __future__ import annotations

import re

import pytest

from configurator.catalog.evidence import Result, evidence, studies, study
from configurator.catalog.store import CATALOG
from configurator.core.errors import UsageError


def _one(study_id: str, variant: str, metric: str, model: str = "") -> Result:
    (found,) = (
        r
        for r in study(study_id).results
        if r.variant == variant and r.metric == metric and model in r.model
    )
    return found


def test_how_much_there_is() -> None:
    assert len(studies()) == 32
    assert len(evidence()) == 412
    assert len({r.id for r in evidence()}) == 412


@pytest.mark.parametrize("result", evidence(), ids=lambda r: r.id)
def test_a_result_is_consistent(result: Result) -> None:
    assert result.where
    assert result.metric
    assert result.baseline
    if result.delta is None:
        assert result.verdict
    else:
        assert result.value is not None
        assert result.baseline_value is not None
        assert result.value - result.baseline_value == pytest.approx(result.delta, abs=6e-4)
    if result.n_heads and result.n_kv_heads:
        assert result.n_heads % result.n_kv_heads == 0


def test_stated_caches_follow_from_the_geometry() -> None:
    """Keys and values of each KV head; a latent and its rotary key."""
    checked = 0
    for result in evidence():
        latent = re.fullmatch(r"MLA\((\d+),(\d+)\)", result.variant)
        if latent and result.kv_elements:
            assert result.kv_elements == int(latent[1]) + int(latent[2]), result.id
            checked += 1
        plain = re.fullmatch(r"MHA|MQA|GQA-\d+", result.variant)
        if plain and result.n_kv_heads and result.d_head and result.kv_elements:
            assert result.kv_elements == 2 * result.n_kv_heads * result.d_head, result.id
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("study_id", "variant", "metric", "value", "against"),
    [  # as printed in the papers
        ("ainslie-2023", "GQA-8 (uptrained)", "average of 7 tasks", 47.1, 47.2),
        ("ainslie-2023", "MQA (uptrained)", "average of 7 tasks", 46.6, 47.2),
        ("deepseek-v2-2024", "GQA-8", "MMLU 5-shot", 41.2, 45.2),
        ("deepseek-v2-2024", "MQA", "MMLU 5-shot", 37.9, 45.2),
        ("gemma-2-2024", "GQA (ratio 2)", "average of 4 benchmarks", 50.8, 50.3),
    ],
)
def test_well_known_results(
    study_id: str, variant: str, metric: str, value: float, against: float
) -> None:
    found = _one(study_id, variant, metric)
    assert (found.value, found.baseline_value) == (value, against)


def test_which_way_is_worse() -> None:
    fewer = _one("deepseek-v2-2024", "GQA-8", "MMLU 5-shot")
    assert not fewer.lower_is_better
    assert fewer.worse_by == pytest.approx(4.0)
    perplexity = next(r for r in study("zadouri-2025").results if r.variant == "MQA")
    assert perplexity.lower_is_better
    assert perplexity.worse_by == perplexity.delta
    verdict = next(r for r in evidence() if r.verdict)
    assert verdict.worse_by is None
    pruned = study("michel-2019").results[0]
    assert not pruned.lower_is_better


def test_a_study_by_id_or_number() -> None:
    assert study("2305.13245") is study("arXiv:2305.13245") is study("ainslie-2023")
    assert study("ainslie-2023").source.endswith("(2023, arXiv:2305.13245)")
    assert len(study("zadouri-2025").results) == 97  # its two files are one study
    with pytest.raises(UsageError, match="unknown study 'ainsly-2023'; nearest: ainslie-2023"):
        study("ainsly-2023")
    with pytest.raises(UsageError, match="unknown study"):
        study("")


def test_studies_say_how_they_were_read() -> None:
    for found in studies():
        assert found.read
        assert 2016 < found.year < 2030
        assert found.arxiv == "" or re.fullmatch(r"\d{4}\.\d{5}", found.arxiv)
    second_hand = {s.id for s in studies() if not s.first_hand}
    assert {"hu-2024-mfa", "mehta-2025", "meng-2025-transmla"} <= second_hand


def test_every_file_reads_well() -> None:
    for path in (CATALOG / "evidence").glob("*.toml"):
        text = path.read_text()
        assert text.startswith("# ")
        assert len(text.splitlines()) <= 350, path.name
