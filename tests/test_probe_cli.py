"""The commands probe, study and heads: exit codes, what goes where, Ctrl-C."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from configurator.cli import main
from configurator.cli._training import Live, Training, _reserve, parse_seeds
from configurator.core.errors import UsageError

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["--d-model", "32", "--n-heads", "2", "--n-kv-heads", "1"]
KEYS = {"task", "accuracy", "steps", "seconds", "control_accuracy", "passed", "curve"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints go to the current folder."""
    monkeypatch.chdir(tmp_path)


def test_a_probe_that_passes_is_0_and_writes_json_and_picture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [*SMALL, "--task", "copy", "--seeds", "1", "--steps", "150", "--format", "json"]
    assert main(["probe", *words, "--plot", "curve.svg"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result.keys() >= KEYS
    assert result["passed"]
    assert result["accuracy"] >= 0.95
    assert "1 layer (control)" in Path("curve.svg").read_text()
    assert [f.name for f in tmp_path.iterdir()] == ["curve.svg"]  # no checkpoint is left


def test_a_probe_that_misses_is_1_and_gives_the_curve(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", *SMALL, "--steps", "2", "--seeds", "1", "--output", "probe.md"]) == 1
    assert "wrote probe.md" in capsys.readouterr().err
    text = Path("probe.md").read_text()
    assert "Missed: two layers reach" in text
    assert "](probe.svg)\n\n## " in text
    assert Path("probe.svg").exists()
    assert "2 layers, seed 0         " in text  # the curve, also without the picture


def test_a_page_shows_the_picture_wherever_it_is(tmp_path: Path) -> None:
    Path("a folder").mkdir()
    words = ["probe", *SMALL, "--steps", "1", "--seeds", "1"]
    assert main([*words, "--output", "p.html", "--plot", "a folder/c.svg"]) == 1
    assert '<img src="a%20folder/c.svg"' in Path("p.html").read_text()
    assert not Path("p.svg").exists()


def test_the_answer_holds_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SMALL, "--task", "recall", "--steps", "1", "--seeds", "7,", "--device", "cpu"]
    assert main(["probe", *words, "--shrink", "--format", "json"]) == 1
    command = json.loads(capsys.readouterr().out)["command"]
    assert command.startswith("mha-configurator probe ")
    assert main([*shlex.split(command)[1:], "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["command"] == command
    for part in ("--task recall", "--steps 1", "--seeds 7,", "--device cpu", "--shrink"):
        assert part in command
    assert main(["probe", *words, "--shrink"]) == 1
    assert command in capsys.readouterr().out


def test_what_is_not_trained_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--window", "512", "--arch", "encoder", "--context", "4k", "--target", "h100-sxm"]
    assert main(["probe", *SMALL, *words, "--steps", "1", "--seeds", "1", "--format", "json"]) == 1
    window, arch, rest = json.loads(capsys.readouterr().out)["warnings"]
    assert "the window is not trained" in window
    assert "though the model asked for is an encoder" in arch
    assert rest.endswith(": --context, --target")
    latent = ["--d-model", "32", "--n-heads", "2", "--kv-lora-rank", "8", "--n-kv-heads", "2"]
    widths = ["--qk-nope-head-dim", "16", "--d-head", "8", "--v-head-dim", "16"]
    assert main(["probe", *latent, *widths, "--steps", "1", "--seeds", "1"]) == 1
    assert "alone is trained: --n-kv-heads, --d-head" in " ".join(capsys.readouterr().out.split())


def test_a_folder_that_cannot_be_written_costs_the_checkpoint_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def refuse(path: Path, *args: Any, **options: Any) -> Any:
        if path.suffix == ".checkpoint":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["probe", *SMALL, "--steps", "1", "--seeds", "1"]) == 1
    said = capsys.readouterr()
    assert "Missed: two layers" in said.out
    assert said.err.startswith("no mha-probe.checkpoint can be made here: nothing is kept")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [["--output", "x.md"], ["--plot", "x.svg"], ["--resume", "x"]])
def test_what_cannot_be_written_is_refused_before_training(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr("configurator.probe.hook.train", pytest.fail)
    assert main(["probe", *SMALL, *words]) == 2
    assert f"{words[0]} '{words[1]}': cannot write there (permission denied)" in (
        capsys.readouterr().err
    )


def test_results_that_cannot_be_written_leave_the_checkpoint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    words = ["probe", *SMALL, "--steps", "1", "--seeds", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("configurator.cli.output.write_whole", refuse)
        assert main([*words, "--output", "x.json"]) == 2
    assert "what was finished is in mha-probe.checkpoint" in capsys.readouterr().err
    monkeypatch.setattr("configurator.probe.hook.train", pytest.fail)  # all is in the checkpoint
    assert main([*words, "--resume", "mha-probe.checkpoint"]) == 1


def test_a_wrong_question_leaves_no_checkpoint(tmp_path: Path) -> None:
    assert main(["probe", *SMALL, "--task", "bogus"]) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["probe", *SMALL], ["heads", "a b"]])
def test_a_picture_is_svg(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--plot", "x.png"], ["--plot", "x"]):
        assert main([*words, *wrong]) == 2
        assert "name a file that ends in .svg" in capsys.readouterr().err
    for wrong in (["--format", "json"], ["--plot", "y.svg"]):
        assert main([*words, "--output", "x.svg", *wrong]) == 2
        assert "a picture's file is --plot" in capsys.readouterr().err


def test_a_picture_without_matplotlib_is_refused_before_training(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with monkeypatch.context() as patch:
        patch.setattr("configurator.probe.hook.train", pytest.fail)
        assert main(["probe", *SMALL, "--plot", "x.svg"]) == 3
    assert "--plot needs matplotlib" in capsys.readouterr().err
    assert main(["probe", *SMALL, "--steps", "1", "--seeds", "1", "--output", "p.md"]) == 1
    assert "no picture" in capsys.readouterr().err
    assert ".svg" not in Path("p.md").read_text()


def test_a_budget_is_recommended_first_and_then_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["probe", "--params", "7B", "--context", "32k", "--steps", "1", "--seeds", "1"]) == 1
    )
    assert "shrunk to" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["probe", *SMALL, "--task", "bogus"], "unknown task 'bogus'"),
        (["probe", *SMALL, "--seeds", "x"], "--seeds 'x': give a count such as 3"),
        (["probe", *SMALL, "--seeds", "1,1"], "names a seed twice"),
        (["probe", *SMALL, "--steps", "0"], "greater than or equal to 1"),
        (["probe"], "no geometry"),
        (["probe", "--d-model", "4096", "--n-heads", "32", "--n-kv-heads", "7"], "not a multiple"),
        (["probe", *SMALL, "--resume", "no/such/file"], "not a file in an existing folder"),
        (["study", "head"], "unknown study 'head'; nearest: heads"),
        (["study", "heads", "--ranks", "4"], "--ranks belongs to `study mla-rank`"),
        (["study", "heads", "--heads", "3,4"], "heads 3 do not divide the width of 64"),
        (["study", "mqa", "--output", "no/such"], "does not exist; make it first"),
        (["study", "mla-rank", "--corpus", "absent.txt"], "No such file"),
        (["study", "mla-rank", "--ranks", "0"], "give whole numbers from 1 to 4096"),
        (["heads", ""], "nothing to see; give at least two words"),
        (["heads", "a b", "--trained", "copy", "--source", "c d"], "leave out --source"),
        (["heads", "a b", "--steps", "9"], "name a task with --trained"),
        (["study", "mla-rank", "--corpus", "/dev/null"], "is no plain file"),
        (["heads", "a b", "--seed", str(10**30)], "it must be from 0 to"),
        (["heads", "a b c", "--n-heads", "2000"], "more than 128 maps cannot be read"),
        (["probe", *SMALL, "--device", "cpu:"], "unknown device 'cpu:'"),
        (["probe", "--d-model", "100", "--n-heads", "20"], "d-head is 5: rotary embedding"),
    ],
)
def test_a_wrong_question_is_2_and_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not said.out


@pytest.mark.parametrize("words", [["probe", *SMALL], ["study", "mqa"], ["heads", "a b"]])
def test_without_torch_it_is_3_and_says_how_to_install_it(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(words) == 3
    assert 'pip install "mha-configurator[bench]"' in capsys.readouterr().err


def test_a_device_that_is_not_here_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", *SMALL, "--device", "cuda:99"]) == 3
    assert "use --device cpu" in capsys.readouterr().err


def test_a_study_writes_three_files() -> None:
    words = ["study", "heads", "--heads", "2,4", "--steps", "1", "--seeds", "2"]
    assert main([*words, "--output", "made"]) == 0
    assert sorted(f.name for f in Path("made").iterdir()) == ["heads.json", "heads.md", "heads.svg"]
    assert "(heads.svg)" in Path("made/heads.md").read_text()
    assert json.loads(Path("made/heads.json").read_text())["seeds"] == [0, 1]


def test_heads_prints_maps_and_writes_svg(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", "the cat sat", "--output", "maps.svg"]) == 0
    assert Path("maps.svg").read_text().startswith("<svg")
    assert main(["heads", "the cat sat", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["heads"]) == 4
    assert found["caution"]


def test_ctrl_c_keeps_a_checkpoint_from_which_the_run_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "configurator", "probe", *SMALL, "--task", "copy"]
    options = ["--seeds", "1", "--device", "cpu", "--resume", str(kept)]
    running = subprocess.Popen(
        [*command, *options, "--steps", "3000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert running.stderr is not None
    seen = ""
    while "1 layer, seed 0: step" not in seen:  # the control, which takes all its steps
        line = running.stderr.readline()
        assert line, seen
        seen += line
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted in 1 layer, seed 0 after step" in err
    assert f"repeat the command with --resume {kept}" in err
    assert not out
    other = subprocess.run(
        [*command, *options, "--steps", "2999"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=90,
    )
    assert other.returncode == 2
    assert "was made with steps=3000, this run has 2999" in other.stderr


@pytest.mark.parametrize("name", ["probe", "cli.probe", "cli.study", "cli.heads"])
def test_importing_does_not_load_torch(name: str) -> None:
    code = f"import sys, configurator.{name}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stderr


def test_two_runs_in_one_folder_have_a_checkpoint_each() -> None:
    assert _reserve("a.checkpoint") == Path("a.checkpoint")
    assert _reserve("a.checkpoint") == Path("a-2.checkpoint")
    with Training.begin(None, "a.checkpoint") as first, Training.begin(None, "a.checkpoint") as two:
        assert [first.keep, two.keep] == [Path("a-3.checkpoint"), Path("a-4.checkpoint")]
    assert sorted(f.name for f in Path().iterdir()) == ["a-2.checkpoint", "a.checkpoint"]


def test_seeds_are_a_count_or_a_list() -> None:
    assert parse_seeds("3") == (0, 1, 2)
    assert parse_seeds("5, 1") == (5, 1)
    assert parse_seeds("7,") == (7,)
    for text in ("", ",", "-1", "1.5", "0", "101", "9" * 30):
        with pytest.raises(UsageError):
            parse_seeds(text)


def test_progress_counts_the_steps_of_all_runs() -> None:
    from configurator.probe.train import Progress

    live = Live()
    live.plan(100)
    for label in ("a", "b"):
        for step in (1, 2, 3):
            live.watch(Progress(label=label, step=step, steps=50, loss=1.0, accuracy=None))
    assert live._passed == 6
    assert live.total == 100 - (50 - 3)  # a ended early


def test_the_plan_leaves_out_what_a_checkpoint_holds() -> None:
    from configurator import probe
    from configurator.core.kinds.gqa import GroupedQuery

    planned: list[int] = []
    small = GroupedQuery(d_model=32, n_heads=2, n_kv_heads=1, d_head=16)
    kept = Path("kept")
    for seeds, resume in ((1, None), (2, kept)):
        probe.run(
            small, task="copy", seeds=seeds, steps=2, device="cpu", keep=kept, resume=resume,
            plan=planned.append,
        )  # fmt: skip
    assert planned == [2 * 2, 2]
