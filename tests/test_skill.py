"""The agent skill: its front matter, its commands against the real tool, its installation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_commands import DOCUMENTS, SKILL, commands_in, shown

from configurator.cli import _group, main
from configurator.cli.app import commands
from configurator.cli.skill import skill_text

TEXT = SKILL.read_text(encoding="utf-8")


def parse(words: list[str]) -> None:
    """Let the real command read the words without running it; raises where it would refuse."""
    group = _group()
    with group.make_context("mha-configurator", [words[0]]) as ctx:
        _, command, _ = group.resolve_command(ctx, [words[0]])
        command.make_context(words[0], words[1:], parent=ctx)


def test_front_matter_is_what_agents_read() -> None:
    match = re.match(r"---\nname: ([a-z0-9-]+)\ndescription: (.+)\n---\n", TEXT)
    assert match is not None
    assert match[1] == "mha-configurator"
    assert 100 < len(match[2]) <= 1024  # the limit that agents put on a description
    assert "Use when" in match[2]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_every_command_a_document_shows_is_read_by_the_tool(path: Path) -> None:
    found = shown(path)
    for words in found:
        assert words[0] in commands(), words
        parse(words)
    if path != DOCUMENTS[2]:
        assert len(found) >= 5


SLOW = ("bench", "probe")  # they need torch and a minute; their own tests run them


@pytest.mark.parametrize("words", [w for w in shown(SKILL) if w[0] not in SLOW], ids=" ".join)
def test_the_skills_commands_run(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (0, 1)
    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_the_reader_of_documents_can_fail() -> None:
    wrong = commands_in("    mha recommend --prams 7B\n`mha-configurator chek --d-model 3`")
    assert wrong == [["recommend", "--prams", "7B"], ["chek", "--d-model", "3"]]
    with pytest.raises(Exception, match="No such option: --prams"):
        parse(wrong[0])
    with pytest.raises(ValueError, match="unknown command 'chek'"):
        parse(wrong[1])


def test_options_and_keys_that_the_skill_names_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["recommend", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in set(re.findall(r"`(--[a-z-]+)`", TEXT)):
        assert flag in text, flag
    assert main(["recommend", "--params", "1B", "--format", "json"]) == 0
    report = capsys.readouterr().out
    table = TEXT.split("## How to read the answer")[1].split("## How to report")[0]
    for key in set(re.findall(r"`([a-z][a-z_0-9]+)`", table)):
        assert f'"{key}"' in report or key in (*commands(), "rows", "ok"), key


def test_guardrails_and_exit_codes_are_stated() -> None:
    for words in ("narrower than 32", "more than 16 heads", "32,768", "--benchmarking",
                  "0 done", "1 the answer is no", "2 the question was wrong", "130"):  # fmt: skip
        assert words in TEXT


def test_skill_prints_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == TEXT == skill_text()


def test_install_writes_once_and_never_over_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["skill", "install", "--to", str(tmp_path / "skills")]
    file = tmp_path / "skills" / "mha-configurator" / "SKILL.md"
    assert main(words) == 0
    assert file.read_text(encoding="utf-8") == TEXT
    assert main(words) == 0
    assert "up to date" in capsys.readouterr().out
    file.write_text("mine", encoding="utf-8")
    assert main(words) == 2
    assert "add --force to replace it" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "mine"
    assert main([*words, "--force"]) == 0
    assert file.read_text(encoding="utf-8") == TEXT
    assert [p.name for p in file.parent.iterdir()] == ["SKILL.md"]


def test_install_goes_where_agents_look_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["skill", "install"]) == 0
    assert (tmp_path / ".claude" / "skills" / "mha-configurator" / "SKILL.md").is_file()


def test_install_into_the_skills_own_folder_does_not_nest(tmp_path: Path) -> None:
    assert main(["skill", "install", "--to", str(tmp_path / "mha-configurator")]) == 0
    assert (tmp_path / "mha-configurator" / "SKILL.md").is_file()


def test_install_where_a_file_is_in_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    assert main(["skill", "install", "--to", str(tmp_path / "taken")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
