"""The rulebook as pages and as a command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from configurator import rulebook
from configurator.cli import main
from configurator.core.rule import Evidence
from configurator.render import pages

ROOT = Path(__file__).parents[1]


def test_the_book_holds_every_rule_once_and_its_links_lead_somewhere():
    book = pages.rulebook_page()
    headings = re.findall(r"^### (\S+)$", book, re.MULTILINE)
    assert sorted(headings) == sorted(r.id for r in rulebook.rules())
    anchors = {heading.replace("/", "") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", book)) == anchors
    assert "``" not in book
    assert f"{len(headings)} rules in 7 concerns" in book


def test_the_committed_book_is_current():
    committed = (ROOT / "outputs" / "rulebook.md").read_text(encoding="utf-8")
    assert committed == pages.rulebook_page(), "run `make pages`"


def test_a_page_has_what_a_reader_needs():
    page = pages.rule_page(rulebook.rule("mha-beyond-32k"))
    assert page.startswith("# memory/mha-beyond-32k\n")
    for word in ("Severity: warning", "Evidence: strong", "## Why", "## Instead", "512 KiB"):
        assert word in page
    assert "File: rules/memory/mha_beyond_32k.py" in page


def test_the_named_files_exist():
    for rule in rulebook.rules():
        assert (ROOT / dict(pages.facts(rule))["File"]).is_file()


def _row(document: dict[str, Any], **wanted: object) -> dict[str, Any]:
    return next(r for r in document["rows"] if wanted.items() <= r.items())


def _heads(document: dict[str, Any]) -> list[str]:
    wide, narrow, least = (_row(document, task="induction", d_head=d) for d in (64, 16, 4))
    assert least["seeds_at_95"] == 0
    assert "from 2 to 4 (d_head 32 to 16) the curve is flat" in document["answer"]
    means = [row["mean_loss"]["mean"] for row in (wide, narrow)]
    return [f"{means[0]:.2f} nats with", f"{means[1]:.2f} with heads of 16; heads of 4 never"]


def _mqa(document: dict[str, Any]) -> list[str]:
    mqa, mha = _row(document, name="MQA"), _row(document, name="MHA")
    later = mqa["mean_loss"]["mean"] - mha["mean_loss"]["mean"]
    return [f"mean loss {later:+.3f} nats", f"{mqa['accuracy']['mean']:.1%} right"]


def _latents(document: dict[str, Any]) -> list[str]:
    over = {
        rank: _row(document, kv_lora_rank=rank)["bits_over_mha"]["mean"]
        for rank in (8, 16, 23, 32, 64, 128)
    }
    wide = [bits for rank, bits in over.items() if rank > 16]
    return [
        f"at {over[8]:+.3f} and {over[16]:+.3f} bits",
        f"between {min(wide):+.3f} and {max(wide):+.3f},",
    ]


def _rates(document: dict[str, Any]) -> list[str]:
    rates = document["profile"]["coefficients"]
    latent, kv = (rates[f"host.decode.{k}.bf16.bytes_per_s"] / 1e9 for k in ("latent", "kv"))
    return [f"{latent:.1f} GB/s and", f"{kv:.1f} GB/s."]


MEASURED_HERE = {
    "shape/head-width-at-least-32": _heads,
    "quality/more-than-one-kv-head": _mqa,
    "quality/latent-rank-is-wide-enough": _latents,
    "kernels/cpu-rebuilds-latents": _rates,
}


def test_what_rules_cite_as_measured_here_is_what_was_measured():
    cited = {r.id: r for r in rulebook.rules() if "measured here:" in " ".join(r.source.split())}
    assert set(cited) == set(MEASURED_HERE)
    assert {r.id for r in rulebook.rules() if r.evidence is Evidence.MEASURED_HERE} <= set(cited)
    for name, figures in MEASURED_HERE.items():
        rule = cited[name]
        (path,) = re.findall(r"outputs/\S+\.md", rule.source)
        document = json.loads((ROOT / path).with_suffix(".json").read_text(encoding="utf-8"))
        page = " ".join(rule.page.split())
        for figure in figures(document):
            assert figure in page, f"{name} does not say {figure} as {path} does"


def test_the_book_is_written_whole(tmp_path: Path):
    target = pages.write_rulebook(tmp_path / "rulebook.md")
    assert target.read_text(encoding="utf-8") == pages.rulebook_page()
    assert [p.name for p in tmp_path.iterdir()] == ["rulebook.md"]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What ``mha rules ...`` prints; it must end with 0."""

    def run(*arguments: str) -> str:
        assert main(["rules", *arguments]) == 0
        return capsys.readouterr().out

    return run


Ask = Callable[..., str]


def test_the_list_names_every_rule(ask: Ask):
    out = ask()
    for rule in rulebook.rules():
        assert rule.id.partition("/")[2] in out
    assert out.startswith(f"{len(rulebook.rules())} rules")


def test_a_search_finds_words_in_pages(ask: Ask):
    out = ask("flashmla")
    assert "flash-mla-shape" in out
    assert "vocabulary-is-padded" not in out


@pytest.mark.parametrize("name", ["quality/groups-stay-at-16", "groups-stay-at-16"])
def test_one_rule_shows_its_page(name: str, ask: Ask):
    out = ask(name)
    for word in ("Why", "Instead", "Source", "advice", "weak", "19 of 110"):
        assert word in out


def test_json_has_the_declared_values(ask: Ask):
    one = json.loads(ask("heads-fill-the-width", "--format", "json"))
    assert one["id"] == "shape/heads-fill-the-width"
    assert one["severity"] == "error"
    assert one["masks"] is True
    assert set(one["page"]) == {"what", "why", "instead", "source"}
    every = json.loads(ask("--format", "json"))["rules"]
    assert {r["id"] for r in every} == {r.id for r in rulebook.rules()}
    assert all(r["source"] and r["title"] and r["example"] for r in every)


def test_markdown_goes_to_a_file(tmp_path: Path, ask: Ask):
    target = tmp_path / "rule.md"
    ask("mla-below-a-billion", "--output", str(target))
    assert "## Instead" in target.read_text(encoding="utf-8")


def test_an_unknown_rule_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]):
    assert main(["rules", "kv-heads-divide-haeds"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert "shape/kv-heads-divide-heads" in shown.err
