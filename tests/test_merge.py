"""``merge``: shards join to what one run would have given, or it says what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import runner_tasks as tasks

from configurator.cli import main
from configurator.rows import read_rows
from configurator.runner import run_map

ITEMS = [{"n": n} for n in range(7)]


def shard(folder: Path, part: str, items: list[dict[str, int]] = ITEMS) -> str:
    file = folder / f"{part.replace('/', '-')}.jsonl"
    run_map(tasks.square, items, on="here", shard=part, resume=file)
    return str(file)


def test_shards_join_to_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [shard(tmp_path, f"{i}/3") for i in (3, 1, 2)]
    assert main(["merge", *files]) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    whole = run_map(tasks.square, ITEMS, on="here")
    assert [row["row"] for row in rows] == [row["row"] for row in whole]
    assert err == "7 of 7 rows of runner_tasks:square\n"


def test_missing_shards_are_named_and_the_rest_can_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "all.jsonl"
    files = [shard(tmp_path, "1/4"), shard(tmp_path, "3/4")]
    assert main(["merge", *files, "--output", str(target)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "4 of 7 rows" in err
    assert "missing: 3 rows (shards 2/4, 4/4)" in err
    assert len(run_map(tasks.square, ITEMS, on="here", resume=target)) == 7
    assert main(["merge", str(target)]) == 0


def test_rows_given_twice_are_kept_once_and_finished_goes_before_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, failed = shard(tmp_path, "1/1"), tmp_path / "failed.jsonl"
    rows = [
        row | {"status": "failed", "row": None, "reason": "x"} for row in read_rows(Path(file))[0]
    ]
    failed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for order in ([str(failed), file, file], [file, file, str(failed)]):
        assert main(["merge", *order]) == 0
        out, err = capsys.readouterr()
        assert [json.loads(line)["row"]["n"] for line in out.splitlines()] == list(range(7))
        assert "7 of 7 rows of runner_tasks:square; 14 repeated left out" in err
    assert main(["merge", str(failed)]) == 1
    assert "failed: 7 rows (items 0, 1, 2, 3, 4, 5, 6)" in capsys.readouterr().err


def test_rows_of_two_runs_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("as it was\n")
    (tmp_path / "other").mkdir()
    files = [shard(tmp_path, "1/2"), shard(tmp_path / "other", "2/2", ITEMS[:5])]
    assert main(["merge", *files, "--output", str(target)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{files[1]!r} (unlike {files[0]!r}) holds rows of another run" in err
    assert target.read_text() == "as it was\n"
    newer = tmp_path / "newer.jsonl"
    newer.write_text(Path(files[0]).read_text().replace('"version":"', '"version":"9'))
    assert main(["merge", files[0], str(newer)]) == 2
    assert "holds rows of version 9" in capsys.readouterr().err


def _row(**damaged: object) -> str:
    whole = {"key": "a", "index": 0, "of": 2, "run": "r", "function": "f", "version": "1",
             "status": "ok", "row": 1, "shard": "1/2"}  # fmt: skip
    return json.dumps(whole | damaged) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ("", "did the run finish any item?"),
        ("nonsense\n", "line 1 is not a row of a run"),
        ('{"key": 1}\n', "line 1 is not a row of a run"),
        (_row(key=[1]), "line 1 is not a row of a run"),
        (_row(index=True), "line 1 is not a row of a run"),
        (_row(of=10**15), "line 1 is not a row of a run"),
        (_row(shard=7), "line 1 is not a row of a run"),
        (_row(shard="1/0"), "line 1 is not a row of a run"),
        (_row(row=float("nan")), "line 1 is not a row of a run"),
        ("[" * 100_000 + "\n", "line 1 is not a row of a run"),
    ],
    ids=range(11),
)
def test_files_that_are_not_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    file = tmp_path / "rows.jsonl"
    if text is not None:
        file.write_text(text)
    assert main(["merge", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shard(tmp_path, "1/1")
    assert main(["merge", file, "--output", str(tmp_path / "no" / "all.jsonl")]) == 2
    assert "is in a folder that does not exist" in capsys.readouterr().err
