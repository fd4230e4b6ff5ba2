"""Published ablations can be read: as a book, by study, and from the rules that rest on them."""

from __future__ import annotations

import json

from configurator.assemble import LATENT_SOURCES, QUALITY_SOURCES
from configurator.catalog.evidence import cited, evidence, studies
from configurator.cli import main
from configurator.render.evidence import evidence_page


def test_book_holds_every_result_and_is_what_is_checked_in(pytestconfig):
    book = evidence_page()
    for result in evidence():
        assert f"| {result.id} |" in book
    for study in studies():
        assert f'<a id="{study.id}"></a>' in book
    kept = pytestconfig.rootpath / "outputs" / "evidence.md"
    assert kept.read_text(encoding="utf-8") == book, "run: make pages"


def test_sources_name_studies_by_number_or_id():
    assert [s.id for s in cited("Zadouri et al. 2025 (arXiv 2505.21487)")] == ["zadouri-2025"]
    assert cited("own count") == []
    for source in (*QUALITY_SOURCES, *LATENT_SOURCES):
        assert len(cited(source)) == 1


def test_a_study_is_shown_by_id_and_by_number(capsys):
    assert main(["rules", "zadouri-2025"]) == 0
    by_id = capsys.readouterr().out
    assert "zadouri2025-021" in by_id
    assert main(["rules", "2505.21487"]) == 0
    assert capsys.readouterr().out == by_id
    assert main(["rules", "shazeer-2019", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arxiv"] == "1911.02150"
    assert len(found["results"]) == 19


def test_a_rule_names_the_studies_behind_it(capsys):
    assert main(["rules", "quality/mla-below-a-billion", "--format", "json"]) == 0
    assert "zadouri-2025" in json.loads(capsys.readouterr().out)["studies"]
    assert main(["rules", "quality/mla-below-a-billion"]) == 0
    assert "zadouri-2025" in capsys.readouterr().out
