"""What is loaded when: importing the package costs nothing, advice needs no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "ray", "matplotlib", "scipy", "transformers")
LIBRARIES = (*HEAVY, "numpy", "pydantic", "rich", "typer")


def loaded(code: str) -> set[str]:
    """Which of LIBRARIES a fresh interpreter has loaded after running ``code``."""
    report = (
        f"import json, sys\n{code}\n"
        f"print(json.dumps([n for n in {LIBRARIES!r} if n in sys.modules]), file=sys.__stdout__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(line: str) -> str:
    """Code that runs the command line with its output thrown away."""
    return (
        "import contextlib, io\nfrom configurator.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    assert main({line.split()!r}) in (0, 1)"
    )


def test_importing_the_package_loads_no_library() -> None:
    assert loaded("import configurator") == set()


def test_public_names_resolve_and_unknown_ones_do_not() -> None:
    import configurator

    for name in configurator.__all__:
        assert getattr(configurator, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'recomend'"):
        _ = configurator.recomend
    assert set(configurator.__all__) <= set(dir(configurator))


@pytest.mark.parametrize("line", ["--help", "--version"])
def test_help_loads_typer_alone(line: str) -> None:
    assert loaded(command(line)) == {"typer"}


@pytest.mark.parametrize(
    "line",
    [
        "recommend --params 350M --context 4k --target rtx-4090",
        "check --d-model 1024 --n-layers 24 --n-heads 16",
        "compare --d-model 1024 --n-layers 24 --n-heads 16",
        "targets h100-sxm",
        "models llama-3-8b",
    ],
)
def test_advice_loads_nothing_heavy(line: str) -> None:
    assert loaded(command(line)).isdisjoint(HEAVY)


def test_json_output_does_not_load_rich() -> None:
    assert "rich" not in loaded(command("recommend --params 350M --format json"))


def test_the_python_api_loads_neither_torch_nor_a_renderer() -> None:
    code = "from configurator import Request, recommend\nrecommend(Request(params='350M'))"
    assert loaded(code) == {"numpy", "pydantic"}


def test_this_test_can_fail() -> None:
    """The probe sees a library when one is loaded, so its silence means something."""
    assert "numpy" in loaded("import configurator, numpy")
    assert "matplotlib" in loaded("import matplotlib")
