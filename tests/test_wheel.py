"""The wheel alone: built, put into a bare environment without torch, run from another folder.

Dependencies are not downloaded: those that the wheel declares, and what they declare in turn, are
linked from the environment under test, so a forgotten declaration shows as a missing module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "recommend --params 350M --context 4k --target rtx-4090 --format json"


def checked(words: list[str | Path], **options: object) -> str:
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    checked([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT])
    (found,) = folder.glob("*.whl")
    return found


def declared(name: str, found: dict[str, Distribution]) -> None:
    """Add a distribution and what it requires without extras, all the way down."""
    if name.lower() in found:
        return
    found[name.lower()] = distribution(name)
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            declared(requirement.name, found)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of executables of an environment that holds the wheel and its requirements."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    checked([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index",
             "--quiet", "--disable-pip-version-check", wheel])  # fmt: skip
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(checked([python, "-I", "-c", where]).strip())
    found: dict[str, Distribution] = {}
    (info,) = site.glob("mha_configurator-*.dist-info")
    for text in Distribution.at(info).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            declared(requirement.name, found)
    for dist in found.values():
        tops = {Path(file).parts[0] for file in dist.files or () if ".." not in str(file)}
        for top in tops - {"__pycache__"}:
            source, link = Path(str(dist.locate_file(top))), site / top
            if source.exists() and not link.exists():
                link.symlink_to(source)
    return scripts


def test_the_wheel_holds_both_packages_the_data_and_the_skill(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "configurator/py.typed",
        "configurator/skill-mha-configurator.md",
        "configurator/cli/recommend.py",
        "rules/__init__.py",
    ):
        assert needed in names
    assert any(n.startswith("configurator/catalog/devices/") and n.endswith(".toml") for n in names)
    assert any(n.startswith("configurator/catalog/models/") and n.endswith(".toml") for n in names)
    assert {n.split("/")[0].split("-")[0] for n in names} == {
        "configurator",
        "rules",
        "mha_configurator",
    }
    assert sum(n.startswith("rules/") for n in names) > 40
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_the_environment_is_bare(bare: Path) -> None:
    probe = "import importlib.util as u; print([u.find_spec(n) is None for n in ('torch','scipy')])"
    assert checked([bare / "python", "-I", "-c", probe]).strip() == "[True, True]"


def test_advice_works_from_another_folder(bare: Path, tmp_path: Path) -> None:
    out = checked([bare / "mha-configurator", *QUESTION.split()], cwd=tmp_path)
    report = json.loads(out)
    assert report["recommendation"]["d_head"] == 64
    here = checked([sys.executable, "-m", "configurator", *QUESTION.split()], cwd=ROOT)
    assert json.loads(here) == report
    assert list(tmp_path.iterdir()) == []


def test_both_names_the_module_and_the_skill(bare: Path, tmp_path: Path) -> None:
    version = checked([bare / "mha", "--version"], cwd=tmp_path)
    assert version == checked([bare / "python", "-m", "configurator", "--version"], cwd=tmp_path)
    skill = (ROOT / "outputs" / "skill-mha-configurator.md").read_text(encoding="utf-8")
    assert checked([bare / "mha", "skill"], cwd=tmp_path) == skill


def test_python_api_from_the_wheel(bare: Path, tmp_path: Path) -> None:
    code = (
        "from configurator import Request, recommend; "
        "print(recommend(Request(params='7B', context='32k')).cache.bytes_per_token_per_layer_fp16)"
    )
    # 2 x 8 KV heads x 128 x 2 bytes
    assert checked([bare / "python", "-I", "-c", code], cwd=tmp_path).strip() == "4096"
