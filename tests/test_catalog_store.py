"""The compiled copy: used while the files are those it was made from, harmless otherwise."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from configurator.catalog import store
from configurator.core.errors import UsageError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "catalog"
    (folder / "things").mkdir(parents=True)
    (folder / "things" / "a.toml").write_text("[x]\nvalue = 1\n")
    (folder / "single.toml").write_text("value = 2\n")
    return folder


def _copy(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache").rglob("catalog-things-*.json")
    return found


def test_first_load_leaves_a_copy_that_the_second_uses(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}
    assert _copy(tmp_path).is_file()
    monkeypatch.setattr(store, "read_toml", lambda path: pytest.fail("TOML was read again"))
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}


def test_a_section_may_be_one_file(root: Path) -> None:
    assert store.load("single", root=root) == {"single": {"value": 2}}
    with pytest.raises(FileNotFoundError, match="no section 'nothing'"):
        store.load("nothing", root=root)


@pytest.mark.parametrize("change", ["content", "time", "added", "removed"])
def test_any_change_of_the_files_is_seen(root: Path, change: str) -> None:
    extra = root / "things" / "b.toml"
    extra.write_text("[y]\nvalue = 3\n")
    before = store.load("things", root=root)
    assert set(before) == {"a", "b"}
    first = root / "things" / "a.toml"
    if change == "content":
        first.write_text("[x]\nvalue = 100\n")
        assert store.load("things", root=root)["a"]["x"]["value"] == 100
    elif change == "time":  # same size: only the time of change tells
        first.write_text("[x]\nvalue = 7\n")
        os.utime(first, ns=(1, 1))
        assert store.load("things", root=root)["a"]["x"]["value"] == 7
    elif change == "added":
        (root / "things" / "c.toml").write_text("value = 4\n")
        assert set(store.load("things", root=root)) == {"a", "b", "c"}
    else:
        extra.unlink()
        assert set(store.load("things", root=root)) == {"a"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b'"value":1', b'"value":9'),  # the checksum no longer holds
        lambda raw: b"[" * 100_000,
        lambda raw: b"\xff\xfe" + raw,
        lambda raw: b"{}\n" + raw.partition(b"\n")[2],
    ],
)
def test_a_damaged_copy_is_passed_over_and_mended(root: Path, tmp_path: Path, damage) -> None:
    store.load("things", root=root)
    copy = _copy(tmp_path)
    good = copy.read_bytes()
    copy.write_bytes(damage(good))
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}
    assert copy.read_bytes() == good


def test_an_unwritable_cache_costs_nothing_but_speed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # not a folder
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}
    monkeypatch.setattr(store, "cache_folder", lambda: None)
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}


def test_a_failed_write_leaves_nothing_behind(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    assert store.load("things", root=root) == {"a": {"x": {"value": 1}}}
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_the_copy_is_plain_json(root: Path, tmp_path: Path) -> None:
    store.load("things", root=root)
    head, body = _copy(tmp_path).read_bytes().split(b"\n")
    assert json.loads(body) == {"a": {"x": {"value": 1}}}
    assert json.loads(head)["files"][0][0] == "a.toml"


def test_a_broken_catalog_file_is_named(root: Path) -> None:
    (root / "things" / "a.toml").write_text("[x\n")
    with pytest.raises(UsageError, match="is not valid TOML"):
        store.load("things", root=root)


def test_where_caches_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the standard says to ignore it
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    assert store.cache_folder() == Path("/home/ada/.cache/mha-configurator")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert store.cache_folder() == Path("/home/ada/Library/Caches/mha-configurator")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/data")
    assert store.cache_folder() == Path("/data/mha-configurator/cache")
    monkeypatch.delenv("LOCALAPPDATA")
    assert store.cache_folder() is None
