"""Documents against the code: generated pages are current, versions agree, links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from regenerate import README_EXAMPLE, REPORTS, main, stale

from configurator import __version__
from configurator.cli.app import commands

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_pages_are_current() -> None:
    assert stale() == [], "run: make pages"


def test_check_names_what_is_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("regenerate.OUTPUTS", ROOT / "outputs" / "no-such-folder")
    monkeypatch.setattr("regenerate._reports", lambda: iter(()))
    monkeypatch.setattr("regenerate._rulebook", lambda: iter(()))
    monkeypatch.setattr("regenerate._backtest", lambda: iter(()))
    assert main(["--check"]) == 1
    assert "request.schema.json; run: make pages" in capsys.readouterr().out


def test_versions_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)
    assert PROJECT["project"]["version"] == __version__ == released[0]


def test_the_readme_opens_with_an_answer() -> None:
    assert README.index(f"$ mha-configurator {README_EXAMPLE}") < README.index("\n## ")


def test_the_readmes_python_gives_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = README.split("```python\n")[1].split("```")[0]
    scope: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), scope)
    claims = re.findall(r"^(report\.\S+)  # (\d+)$", block, re.MULTILINE)
    assert len(claims) == 2
    for expression, value in claims:
        assert eval(expression, scope) == int(value), expression
    assert capsys.readouterr().out.startswith("# Attention geometry for 6.9")


def test_the_readme_names_every_command_and_only_those() -> None:
    table = README.split("<!-- commands -->")[1].split("<!-- end of commands -->")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(commands())


def test_there_are_golden_reports_for_the_requests_that_matter() -> None:
    assert len(REPORTS) >= 8
    words = " ".join(REPORTS.values())
    for needed in ("--active-params", "--arch encoder ", "encoder-decoder", "--context 1M",
                   "--projection mha", "8xh100-sxm", "--priority memory"):  # fmt: skip
        assert needed in f"{words} "


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_inside_the_project_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in link:
            assert (ROOT / link).exists(), link


def test_the_map_names_folders_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## Map")[1].split("## House rules")[0]
    for path in re.findall(r"`((?:configurator|rules|outputs|benchmarks)/[a-z_/.]*)`", table):
        assert (ROOT / path).exists(), path


def test_make_help_lists_targets_that_the_documents_name() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    text = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|    )make ([a-z]+)", text))
    assert named
    assert named <= targets


def test_constraints_pin_every_declared_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    folded = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    assert folded["torch"] == "2.13.0"
    groups = [PROJECT["project"]["dependencies"]]
    groups += PROJECT["project"]["optional-dependencies"].values()
    for requirement in (r for group in groups for r in group):
        name = re.split(r"[<>=\[ ]", requirement)[0].lower()
        assert name in folded, name
