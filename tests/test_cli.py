"""The command line by exit code and text: what is listed, how it fails, where output goes."""

from __future__ import annotations

import ast
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from configurator import __main__ as entrance
from configurator import __version__
from configurator.cli import main
from configurator.cli.app import commands
from configurator.core.errors import MissingError, MissingExtra

ROOT = Path(__file__).resolve().parents[1]
CLI = ROOT / "configurator" / "cli"


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "configurator", *words],
        capture_output=True, text=True, cwd=ROOT, timeout=120, **options,
    )  # fmt: skip


def test_version_and_bare_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mha-configurator {__version__}\n"
    assert main([]) == 0
    assert "recommend --params 7B" in capsys.readouterr().out


def test_an_interrupt_while_the_command_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("configurator.cli.main", interrupted)
    assert entrance.run() == 130
    assert capsys.readouterr().err == "interrupted\n"
    # Nothing is loaded before the guard that takes a while: an interrupt there would show.
    code = "import sys, configurator.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout.split()
    assert not {"typer", "rich", "numpy", "pydantic", "configurator.cli"} & set(loaded)


def test_help_lists_every_command_that_exists_and_no_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name, summary in commands().items():
        assert f"  {name} " in text
        assert summary.endswith(".")
    listed = {line.split()[0] for line in text.splitlines() if line[:2] == "  " and line[2:3] > "-"}
    assert set(commands()) <= listed


def test_commands_are_the_files_that_define_them() -> None:
    found = set()
    for file in CLI.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        names |= {
            "app"
            for n in tree.body
            if isinstance(n, ast.Assign) and ast.unparse(n.value).startswith("typer.Typer")
        }
        if file.stem in names or "app" in names:
            found.add(file.stem.replace("_", "-"))
    assert set(commands()) == found
    assert {"recommend", "check", "compare", "targets", "models", "skill"} <= found


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help_with_described_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: mha-configurator {name}")
    assert "Traceback" not in text


BAD = [  # what is typed, what the one line must say
    ("recommend", "params is missing; give --params"),
    ("recommend --params", "requires an argument"),
    ("recommend --params=", "params '' is not a size"),
    ("recommend --params 0", "must be above zero"),
    ("recommend --params -5", "params '-5' is not a size"),
    ("recommend --params nan", "params 'nan' is not a size"),
    ("recommend --params inf", "params 'inf' is not a size"),
    ("recommend --params 1e30", "params '1e30' is beyond 10^18"),
    ("recommend --params 7Q", "unknown unit"),
    ("recommend --params 1M", "leave no room for layers"),
    ("recommend --params 7B --d-model 1024 --n-layers 12", "7,000,000,000 do not go with d-model"),
    ("recommend --params 2M --vocab-size 100000", "raise --params, or lower --vocab-size"),
    ("recommend --params 7B --context 0", "context '0' must be above zero"),
    ("recommend --params 7B --context 1e30", "beyond 10^18"),
    ("recommend --params 7B --batch 0", "batch 0 must be at least 1"),
    ("recommend --params 7B --batch 1.5", "'--batch': '1.5' is not a whole number"),
    ("recommend --params 7B --batch nan", "'nan' is not a whole number"),
    ("recommend --params 7B --batch=", "'' is not a whole number"),
    ("recommend --params 7B --target h1000", "unknown target 'h1000'; nearest: "),
    ("recommend --params 7B --target=", "target '' is empty"),
    ("recommend --params 7B --d-model 1000 --d-head 128", "not a multiple of d-head 128"),
    ("recommend --params 7B --d-head 16", "below 32"),
    ("recommend --params 7B --d-head wide", "d-head 'wide' is not valid"),
    ("recommend --params 7B --d-model 1000000000000000000000000000000", "must be at most"),
    ("recommend --params 7B --n-layers 0", "n-layers 0 must be at least 1"),
    ("recommend --params 7B --vocab-size 1", "vocab-size 1 must be at least 2"),
    ("recommend --params 7B --projection rnn", "use 'mha', 'gqa', 'mqa' or 'mla'"),
    ("recommend --params 7B --priority fast", "use 'balanced', 'quality'"),
    ("recommend --params 7B --arch rnn", "use 'decoder', 'encoder'"),
    ("recommend --params 7B --kv-dtype fp7", "unknown kv-dtype 'fp7'; nearest: "),
    ("recommend --params 7B --weight-dtype x", "unknown weight-dtype 'x'"),
    ("recommend --params 7B --tensor-parallel 0", "tensor-parallel 0 must be at least 1"),
    ("recommend --params 7B --tensor-parallel 8 --target h100-sxm", "name 8xh100-sxm5-80gb"),
    ("recommend --params 7B --full-every 6", "full-every 6 needs a window"),
    ("recommend --params 7B --window 0", "window '0' must be above zero"),
    ("recommend --params 7B --source-len 4k", "needs --arch encoder-decoder"),
    ("recommend --params 7B --active-params 8B", "must be below params"),
    ("recommend --params 7B --memory 24GiB", "needs its bandwidth"),
    ("recommend --params 7B --memory 24Gb --bandwidth 3", "24GiB (2^30) or 24GB (10^9)"),
    ("recommend --params 7B --memory 4GiB --bandwidth nan", "bandwidth 'nan' is not a size"),
    ("recommend --params 7B --tflops -1", "tflops '-1' is not a size"),
    ("recommend --params 7B --top 0", "top 0 must be at least 1"),
    ("recommend --params 7B --format xml", "use terminal, markdown, json, html"),
    ("recommend --params 7B --output /no/such/folder/x.md", "folder that does not exist"),
    ("recommend --params 7B --output=", "output '' is empty"),
    ("recommend --params 7B --output .", "is a folder"),
    ("recommend words --params 7B", "unexpected extra argument"),
    ("recommend --contxt 5", "No such option: --contxt"),
    ("recomend", "unknown command 'recomend'; nearest: recommend"),
    ("check", "give --d-model and --n-heads"),
    ("check --n-heads 8", "d-model is missing"),
    ("check --d-model 1000 --n-heads 16", "not a multiple of n-heads 16"),
    ("check --d-model 4096 --n-heads 8 --n-kv-heads 16", "it must divide n-heads"),
    ("check --params 7B --n-heads 8", "use one of the two"),
    ("check --d-model 64 --n-heads 4 --q-lora-rank 3", "add --kv-lora-rank"),
    ("compare --d-model x --n-heads 4", "'x' is not a whole number"),
    ("targets nosuchdevice", "unknown target 'nosuchdevice'"),
    ("targets ./nosuch.toml", "cannot be read"),
    ("models nosuchmodel", "unknown model 'nosuchmodel'"),
    ("skill install --to=", "to '' is empty"),
    ("skill remove", "No such command"),
]


@pytest.mark.parametrize(("typed", "says"), BAD, ids=[typed for typed, _ in BAD])
def test_a_wrong_question_gets_one_line_and_exit_2(
    typed: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert says in err


@pytest.mark.parametrize("words", [["recommend"], ["skill"], ["check", "--output"], ["audit"]])
def test_what_has_no_end_is_cut(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "9" * 5000]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert len(err) < 400


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", "--params", "7\x1b[2J\nB"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert err.count("\n") == 1


def stub(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(request: object) -> None:
        raise error

    monkeypatch.setattr("configurator.api.recommend", fail)


ASK = ["recommend", "--params", "1B"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            MissingExtra("bench", "torch", "the micro-benchmark"),
            3,
            "error: the micro-benchmark needs torch; install it with: "
            'pip install "mha-configurator[bench]"',
        ),
        (MissingError("no CUDA device"), 3, "error: no CUDA device"),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch.nn"),
            3,
            'error: this command needs torch; install it with: '
            'pip install "mha-configurator[bench]"',
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(errno.EACCES, "Permission denied", "x.json"), 2,
         "error: x.json: Permission denied"),
        (ZeroDivisionError("a\nb"), 70, "internal error (ZeroDivisionError: a b): please report "
         "it; MHA_CONFIGURATOR_DEBUG=1 shows the traceback"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_every_failure_has_its_code_and_one_line(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stub(monkeypatch, error)
    monkeypatch.delenv("MHA_CONFIGURATOR_DEBUG", raising=False)
    assert main(ASK) == code
    assert capsys.readouterr().err == f"{line}\n"


def test_the_traceback_is_there_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub(monkeypatch, ZeroDivisionError("x"))
    monkeypatch.setenv("MHA_CONFIGURATOR_DEBUG", "1")
    assert main(ASK) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error() -> None:
    words = [sys.executable, "-m", "configurator", "targets"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=120) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "configurator", "skill"],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=120,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"error: output: {os.strerror(errno.ENOSPC)}\n"


def test_closed_streams_are_no_error() -> None:
    words = [sys.executable, "-m", "configurator", "models", "llama-3-8b"]
    line = " ".join(words)
    assert subprocess.run(["sh", "-c", f"{line} >&-"], cwd=ROOT, timeout=120).returncode == 0
    assert subprocess.run(["sh", "-c", f"{line} 2>&-"], cwd=ROOT, timeout=120,
                          stdout=subprocess.DEVNULL).returncode == 0  # fmt: skip


def test_an_ascii_terminal_shows_a_mark_and_no_traceback() -> None:
    done = run("models", "mistral", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == ""


def test_python_m_gives_the_same_exit_code() -> None:
    done = run("recommend", "--params", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: params '0'")


@pytest.mark.parametrize(
    "command",
    [
        ["calibrate"],
        ["bench", "--d-model", "64", "--n-heads", "1"],
        ["backtest"],
        ["recommend", "--params", "1B", "--sweep", "context=4k,8k"],
    ],
    ids=lambda c: c[0],
)
def test_an_output_that_cannot_be_written_is_found_before_the_work(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command[0] in ("bench", "calibrate"):
        pytest.importorskip("torch")

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    path = str(tmp_path / "out.md")
    assert main([*command, "--output", path]) == 2
    said = f"error: --output {path!r}: cannot write there (permission denied)\n"
    assert capsys.readouterr().err == said
