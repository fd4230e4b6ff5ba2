"""The runner in this process and in local processes: nothing lost, nothing done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import runner_tasks as tasks
from hypothesis import given
from hypothesis import strategies as st

from configurator.core.errors import UsageError
from configurator.rows import RowFile, Run, Shard, key_of, parse_shard, read_rows
from configurator.runner import parse_on, run_map

HERE = Path(__file__).parent


def numbers(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"n": n, **more} for n in range(count)]


def answers(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["row"] for row in rows]


@pytest.mark.parametrize("on", ["here", "local"])
def test_rows_in_the_items_order_whoever_does_the_work(on: str) -> None:
    rows = run_map(tasks.square, numbers(6), on=on, workers=2)
    assert answers(rows) == [{"n": n, "square": n * n} for n in range(6)]
    assert [row["index"] for row in rows] == list(range(6))
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["of"] for row in rows} == {6}
    assert rows[0]["function"] == "runner_tasks:square"
    assert rows[0]["node"]["host"]
    assert rows[0]["node"]["python"]
    assert rows[2]["key"] == key_of({"n": 2})


def test_an_item_given_twice_is_done_once(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    rows = run_map(tasks.noted, [*numbers(2, log=log), *numbers(2, log=log)], on="here")
    assert len(rows) == 2
    assert Path(log).read_text().split() == ["0", "1"]


@pytest.mark.parametrize("on", ["here", "local"])
def test_what_the_function_raises_is_one_failed_row(on: str) -> None:
    rows = run_map(tasks.fails_at_three, numbers(5), on=on, workers=1)
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "failed", "ok"]
    assert rows[3]["reason"] == "ValueError: three is not allowed"
    assert rows[3]["attempts"] == 1
    assert rows[3]["row"] is None


def test_a_result_that_is_not_plain_json_is_a_failed_row() -> None:
    rows = run_map(tasks.not_json, numbers(3), on="here")
    assert [row["status"] for row in rows] == ["failed"] * 3
    assert rows[1]["reason"].startswith("ValueError: Out of range float values")
    assert rows[0]["reason"].startswith("TypeError: Object of type object is not JSON")


def test_a_worker_that_dies_costs_only_its_own_item(tmp_path: Path) -> None:
    items = numbers(8, mark=str(tmp_path / "mark"))
    rows = run_map(tasks.dies, items, on="local", workers=2, retries=1)
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["failed"] + ["ok"] * 4
    assert rows[3]["reason"] == "the worker process ended with exit code 7 (2 times)"
    assert [row["attempts"] for row in rows] == [1, 1, 1, 2, 1, 2, 1, 1]


def test_timings_on_local_processes_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # no GPU to choose
    rows = run_map(tasks.span, numbers(4), on="local", workers=2, accelerator="host")
    spans = sorted((a["began"], a["ended"]) for a in answers(rows))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert len({a["pid"] for a in answers(rows)}) == 1


def test_each_visible_gpu_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-77")
    rows = run_map(tasks.span, numbers(6), on="local", accelerator="host")
    found = {(a["pid"], a["device"]) for a in answers(rows)}
    assert {device for _, device in found} == {"4", "GPU-77"}
    assert len(found) == 2


def test_finished_rows_are_taken_over(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "rows.jsonl"
    items = numbers(6, log=str(log))

    def stop_after_two(row: dict[str, Any], done: int, total: int) -> None:
        assert total == 6
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_map(tasks.noted, items, on="here", resume=file, progress=stop_after_two)
    assert len(read_rows(file)[0]) == 2
    rows = run_map(tasks.noted, items, on="local", workers=2, resume=file)
    assert [row["status"] for row in rows] == ["ok"] * 6
    assert sorted(log.read_text().split()) == list("012345")
    assert len({row["key"] for row in read_rows(file)[0]}) == len(read_rows(file)[0]) == 6


def test_a_torn_last_line_is_done_again(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "rows.jsonl"
    items = numbers(4, log=str(log))
    first = run_map(tasks.noted, items, on="here", resume=file)
    whole = file.read_bytes()
    for cut in (1, 20, len(whole.splitlines()[-1])):
        file.write_bytes(whole[:-cut])
        log.unlink(missing_ok=True)
        again = run_map(tasks.noted, items, on="here", resume=file)
        assert answers(again) == answers(first)
        assert log.read_text().split() == ["3"]
        assert [row["index"] for row in read_rows(file)[0]] == [0, 1, 2, 3]


def test_a_failed_row_is_done_again_and_the_finished_one_counts(tmp_path: Path) -> None:
    file, mark = tmp_path / "rows.jsonl", tmp_path / "mark"
    items = [{"n": 5, "mark": str(mark)}]
    assert run_map(tasks.dies, items, on="local", retries=0, resume=file)[0]["status"] == "failed"
    assert run_map(tasks.dies, items, on="local", retries=0, resume=file)[0]["status"] == "ok"
    mark.unlink()
    assert run_map(tasks.dies, items, on="local", retries=0, resume=file)[0]["status"] == "ok"
    assert not mark.exists()  # the third run had nothing to do


def test_a_spent_budget_leaves_rows_that_a_later_run_does(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "rows.jsonl"
    items = numbers(5, log=str(log), sleep_s=0.3)
    rows = run_map(tasks.noted, items, on="here", resume=file, budget_s=0.05)
    assert [row["status"] for row in rows] == ["ok"] + ["skipped"] * 4
    assert rows[1]["reason"] == "not started: the budget of 0.05 s was spent"
    assert len(read_rows(file)[0]) == 1
    later = run_map(tasks.noted, items, on="here", resume=file)
    assert [row["status"] for row in later] == ["ok"] * 5
    assert log.read_text().split() == list("01234")


def test_results_file_is_not_written_over(tmp_path: Path) -> None:
    file, other = tmp_path / "rows.jsonl", tmp_path / "other.jsonl"
    run_map(tasks.square, numbers(2), on="here", results_file=file)
    with pytest.raises(UsageError, match=r"rows\.jsonl' exists; --resume .*rows\.jsonl goes on"):
        run_map(tasks.square, numbers(2), on="here", results_file=file)
    run_map(tasks.square, numbers(2), on="here", results_file=other, resume=file)
    assert other.read_bytes() == file.read_bytes()


def test_rows_of_another_run_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    run_map(tasks.square, numbers(2), on="here", resume=file)
    with pytest.raises(UsageError, match=r"rows of another run .* 2 items.*use another file"):
        run_map(tasks.square, numbers(3), on="here", resume=file)
    with pytest.raises(UsageError, match="rows of runner_tasks:square, not of runner_tasks:span"):
        run_map(tasks.span, numbers(2), on="here", resume=file)
    file.write_text(file.read_text().replace('"version":"', '"version":"9'))
    with pytest.raises(UsageError, match=r"rows of version 9\S*, not \d"):
        run_map(tasks.square, numbers(2), on="here", resume=file)
    file.write_text('{"a": 1}\n')
    with pytest.raises(UsageError, match="line 1 is not a row of a run"):
        run_map(tasks.square, numbers(2), on="here", resume=file)


def test_two_writers_on_one_file_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="files are locked on POSIX systems")
    file = tmp_path / "rows.jsonl"

    def second(row: dict[str, Any], done: int, total: int) -> None:
        run_map(tasks.square, numbers(2), on="here", resume=file)

    with pytest.raises(UsageError, match="is being written by another process"):
        run_map(tasks.square, numbers(2), on="here", resume=file, progress=second)


DRIVER = """
import sys
from runner_tasks import noted
from configurator.runner import run_map

if __name__ == "__main__":
    log, file, on = sys.argv[1:]
    items = [{"n": n, "log": log, "sleep_s": 0.3} for n in range(12)]
    run_map(noted, items, on=on, workers=2, resume=file)
"""


def driver(tmp_path: Path, on: str, rows_wanted: int, blow: signal.Signals) -> tuple[int, str]:
    """Start a driver, send ``blow`` when it has some rows, return its exit code and stderr."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), str(tmp_path / "log"), str(tmp_path / "rows"), on]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        file = tmp_path / "rows"
        while not file.exists() or file.read_bytes().count(b"\n") < rows_wanted:
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(blow)
        _, text = process.communicate(timeout=60)  # returns once no worker holds stderr open
    return process.returncode, text


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("on", ["here", "local"])
def test_a_killed_driver_is_resumed(tmp_path: Path, on: str) -> None:
    code, _ = driver(tmp_path, on, 3, signal.SIGKILL)
    assert code == -signal.SIGKILL
    kept, _ = read_rows(tmp_path / "rows")
    assert 3 <= len(kept) < 12
    items = numbers(12, log=str(tmp_path / "log"), sleep_s=0.3)
    rows = run_map(tasks.noted, items, on="local", workers=2, resume=tmp_path / "rows")
    assert [row["status"] for row in rows] == ["ok"] * 12
    calls = (tmp_path / "log").read_text().split()
    assert set(calls) == {str(n) for n in range(12)}
    for row in kept:  # finished is finished
        assert calls.count(str(row["item"]["n"])) == 1
    keys = [row["key"] for row in read_rows(tmp_path / "rows")[0]]
    assert len(keys) == len(set(keys)) == 12


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("on", ["here", "local"])
def test_ctrl_c_keeps_what_is_finished_and_says_where(tmp_path: Path, on: str) -> None:
    code, text = driver(tmp_path, on, 2, signal.SIGINT)
    assert code == -signal.SIGINT  # Python's own end for an uncaught KeyboardInterrupt
    kept = len(read_rows(tmp_path / "rows")[0])
    assert kept < 12
    assert f"interrupted: {kept} of 12 rows kept in {tmp_path / 'rows'}; --resume" in text


def test_functions_that_workers_cannot_import_are_refused() -> None:
    with pytest.raises(ValueError, match=r"workers cannot import test_runner:.*<lambda>"):
        run_map(lambda item: item, numbers(2), on="local")
    assert answers(run_map(lambda item: item["n"], numbers(2), on="here")) == [0, 1]


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "3", "a/b", "-1/4", "1/4/2", ""])
def test_a_shard_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a part; write I/N with I from 1 to N, such as"):
        parse_shard(text)


@given(count=st.integers(1, 40), items=st.integers(0, 120))
def test_shards_part_the_items(count: int, items: int) -> None:
    parts = [Shard(i, count).take(range(items)) for i in range(1, count + 1)]
    assert sorted(n for part in parts for n in part) == list(range(items))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for i, part in enumerate(parts, start=1):
        assert all(Shard(i, count).takes(n) for n in part)


def test_a_shard_runs_its_own_items_of_the_same_run() -> None:
    rows = run_map(tasks.square, numbers(7), on="here", shard="2/3")
    assert [row["index"] for row in rows] == [1, 4]
    assert {row["shard"] for row in rows} == {"2/3"}
    assert {row["run"] for row in rows} == {run_map(tasks.square, numbers(7))[0]["run"]}


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
def test_keys_do_not_depend_on_the_order_of_fields(item: dict[str, Any]) -> None:
    assert key_of(item) == key_of(dict(reversed(item.items())))
    assert key_of(item) == key_of(json.loads(json.dumps(item)))
    assert key_of(item) != key_of({**item, "one more \x00": 1})


def test_where_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MHA_CONFIGURATOR_ON", raising=False)
    assert parse_on(None) == "here"
    assert parse_on("ray://head:10001") == "ray://head:10001"
    monkeypatch.setenv("MHA_CONFIGURATOR_ON", "local")
    assert parse_on(None) == "local"
    assert parse_on("here") == "here"
    monkeypatch.setenv("MHA_CONFIGURATOR_ON", "there")
    with pytest.raises(UsageError, match="MHA_CONFIGURATOR_ON 'there' is not a place to run"):
        parse_on(None)
    for wrong in ("ray://", "ray://head", "ray://head:x", "ray://head:99999", "http://head:1"):
        with pytest.raises(UsageError, match=r"^on '.*write here, local \(processes\), ray"):
            parse_on(wrong)


def test_a_rows_file_that_is_no_plain_file_is_refused() -> None:
    with pytest.raises(UsageError, match="is no plain file"):
        RowFile(os.devnull, Run(function="f", version="1", of=1, id="r"))
