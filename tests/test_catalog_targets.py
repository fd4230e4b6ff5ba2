"""Targets: names, aliases, counts, files and numbers; every refusal is one line with a way out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurator.catalog.targets import aliases, custom, describe, device, devices, names
from configurator.core.errors import UsageError

GOOD = """
memory_gib = 24
bandwidth_gb_s = 1000
bf16_dense_tflops = 165
"""


@pytest.mark.parametrize(
    ("short", "full", "memory_gib", "bandwidth", "bf16"),
    [  # vendors' sheets; GeForce with FP32 accumulation
        ("h100-sxm", "h100-sxm5-80gb", 80, 3350e9, 989e12),
        ("h200-sxm", "h200-sxm-141gb", 141, 4800e9, 989e12),
        ("a100-sxm-80gb", "a100-sxm4-80gb", 80, 2039e9, 312e12),
        ("rtx-3060", "rtx-3060-12gb", 12, 360e9, 25.5e12),
        ("rtx-4090", "rtx-4090", 24, 1008e9, 165.2e12),
        ("jetson-agx-orin", "jetson-agx-orin-64gb", 64, 204.8e9, 42.6e12),
        ("m3-max-40", "apple-m3-max-40", 128, 400e9, 14.2e12),
        ("RTX 4090", "rtx-4090", 24, 1008e9, 165.2e12),
    ],
)
def test_short_names_mean_one_device(
    short: str, full: str, memory_gib: int, bandwidth: float, bf16: float
) -> None:
    found = device(short)
    assert found.name == full
    assert found.memory_bytes == memory_gib * 2**30
    assert found.bandwidth_bytes_per_s == pytest.approx(bandwidth)
    assert found.rate("bf16") == (pytest.approx(bf16), "bf16")


@pytest.mark.parametrize(
    ("text", "count", "nodes"),
    [
        ("h200-sxm", 1, 1),
        ("4xh100-sxm", 4, 1),
        ("8xh200-sxm", 8, 1),
        ("16xh200-sxm", 16, 2),
        ("2x8xh200-sxm", 16, 2),
        ("4x4xh200-sxm", 16, 4),
        ("12xh200-sxm", 12, 2),
        ("72xgb200", 72, 1),
    ],
)
def test_multipliers(text: str, count: int, nodes: int) -> None:
    found = device(text)
    assert (found.count, found.nodes) == (count, nodes)


def test_count_argument_multiplies_a_bare_name_only() -> None:
    assert device("h100-sxm", 4).count == 4
    assert device("4xh100-sxm", 4).count == 4
    with pytest.raises(UsageError, match="says 4 devices and count says 8; give one"):
        device("4xh100-sxm", 8)
    for wrong in (0, -1, True, 10**9):
        with pytest.raises(UsageError, match="device count"):
            device("h100-sxm", wrong)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h100", "may mean h100-nvl, h100-pcie, h100-sxm; name one"),
        ("rtx4090", "unknown target 'rtx4090'; nearest: rtx-4090"),
        ("4xrtx4090", "nearest: rtx-4090"),
        ("host", "unknown target 'host'"),
        ("", "target is empty"),
        ("  ", "target is empty"),
        ("0xl40s", "device count 0 must be a whole number"),
        ("nowhere/x.toml", "cannot be read (No such file or directory)"),
        ("a\0b.toml", "cannot be read"),
    ],
)
def test_unknown_names_say_what_is_near(name: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        device(name)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_device_or_one_line(text: str) -> None:
    message = ""
    try:
        assert device(text).count >= 1
    except UsageError as error:
        message = str(error)
    assert "\n" not in message


def test_aliases_are_unique_and_resolve() -> None:
    assert set(aliases().values()) <= set(names())
    assert not set(aliases()) & set(names())
    for alias, full in aliases().items():
        assert device(alias).name == full


def test_devices_are_all_there_once() -> None:
    found = devices()
    assert sorted(d.name for d in found) == names()
    assert all(d.count == d.nodes == 1 for d in found)


def test_describe_tells_what_was_not_verified() -> None:
    told = describe("rtx-4060")
    assert told["verified"] is False
    assert told["figures"]["bf16_dense_tflops"]["basis"] == "unverified"
    assert told["figures"]["memory_gib"] == {
        "value": 8, "unit": "GiB", "basis": "source", "verified": True,
    }  # fmt: skip
    assert told["figures"]["usable_share"]["basis"] == "class"
    assert describe("gb300")["figures"]["units"]["basis"] == "derived"
    assert describe("8xgb300")["count"] == 8
    assert all(describe(name)["file"] for name in names())


def test_a_file_describes_a_target(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + 'sources = ["own measurement"]\nverified = true\n')
    found = device(str(path))
    assert (found.name, found.memory_bytes, found.kind) == ("mine", 24 * 2**30, "other")
    assert found.verified
    assert found.sources == ("own measurement",)
    assert device(f"2x{path}").count == 2 if os.sep in str(path) else True
    assert describe(str(path))["figures"]["bandwidth_gb_s"]["verified"] is True


def test_a_file_that_does_not_say_so_is_unverified(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + 'name = "box"\n')
    assert not device(str(path)).verified
    assert device(str(path)).name == "box"
    assert not any(f["verified"] for f in describe(str(path))["figures"].values())


def test_an_entry_of_the_catalog_can_be_copied(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[my-box]" + GOOD)
    assert device(str(path)).name == "my-box"
    path.write_text("[a]\nmemory_gib = 1\n[b]\nmemory_gib = 1\n")
    with pytest.raises(UsageError, match="unknown key 'a'"):
        device(str(path))
    path.write_text("")
    with pytest.raises(UsageError, match="give memory_gib"):
        device(str(path))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("memory_gb = 24\n" + GOOD, "give memory_gib (2^30 bytes) or memory_gb (10^9)"),
        ("bandwidth_gb_s = 1", "give memory_gib"),
        ("memory_gib = 1", "bandwidth_gb_s is missing"),
        (GOOD + "bandwidth_gbs = 1", "unknown key 'bandwidth_gbs'; did you mean bandwidth_gb_s?"),
        (GOOD + "zzz = 1", "unknown key 'zzz'; known keys:"),
        (GOOD + "fp8_dense_tflops = -1", "fp8_dense_tflops is '-1'; it must be above 0"),
        (GOOD + "fp8_dense_tflops = nan", "it must be finite"),
        (GOOD + "fp8_dense_tflops = inf", "it must be finite"),
        (GOOD + "fp8_dense_tflops = 1" + "0" * 300, "at most 1e+09"),
        (GOOD + 'fp8_dense_tflops = "330"', "it must be a number"),
        (GOOD + "fp8_dense_tflops = true", "it must be a number"),
        (GOOD + "units = 1.5", "it must be a whole number"),
        (GOOD + "usable_share = 1.1", "at most 1 of memory"),
        (GOOD + "verified = 1", "it must be true or false"),
        (GOOD + 'sources = "x"', "it must be a list of texts"),
        (GOOD + 'kind = "gpu"', "it must be one of datacenter-gpu"),
        (GOOD + 'name = "a b"', "name is 'a b'"),
        (GOOD + 'unverified = ["colour"]', "not a figure's key"),
        ("memory_gib = 0\nbandwidth_gb_s = 1", "it must be at least 0.001"),
        ("memory_gib = ", "is not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = 1" + "0" * 5000, "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(body)
    with pytest.raises(UsageError) as caught:
        device(str(path))
    assert words in str(caught.value)
    assert "bad.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mark_of_byte_order_is_no_part_of_the_file(tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbfmemory_gib = 24\nbandwidth_gb_s = 1000\n")
    assert device(str(marked)).memory_bytes == 24 * 2**30


def test_odd_files_are_refused(tmp_path: Path) -> None:
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * 1_000_001)
    with pytest.raises(UsageError, match="at most 1,000,000"):
        device(str(big))
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'note = "\xe9"')
    with pytest.raises(UsageError, match="not UTF-8"):
        device(str(latin))
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        device(str(folder))
    if hasattr(os, "mkfifo"):
        pipe = tmp_path / "pipe.toml"
        os.mkfifo(pipe)
        with pytest.raises(UsageError, match="not a regular file"):
            device(str(pipe))


def test_custom_from_numbers() -> None:
    found = custom(memory="24GiB", bandwidth="1000GB/s", tflops="165", count=2)
    assert (found.name, found.count, found.verified) == ("custom", 2, False)
    assert found.memory_bytes == 24 * 2**30
    assert found.bandwidth_bytes_per_s == 1e12
    assert found.rate("fp8") == (165e12, "fp16")
    assert custom(memory="24GiB", bandwidth="1TB/s").rate("bf16") == (0.0, "")


def test_custom_replaces_a_named_ones_figures() -> None:
    found = custom(base="2xrtx-4090", memory="48GiB")
    assert (found.name, found.count, found.memory_bytes) == ("rtx-4090", 2, 48 * 2**30)
    assert found.rate("bf16")[0] == pytest.approx(165.2e12)
    assert "memory as given" in found.title
    slower = custom(base=device("rtx-4090"), tflops=100)
    assert slower.rate("fp8") == (100e12, "fp16")
    assert custom(base="rtx-4090") == device("rtx-4090")


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"memory": "24GiB"}, "needs its bandwidth"),
        ({"bandwidth": "1000GB/s"}, "needs its memory"),
        ({}, "needs its memory"),
        ({"memory": "-1", "bandwidth": "1"}, "memory '-1' is not a size"),
        ({"memory": "24GiB", "bandwidth": "0"}, "must be above zero"),
        ({"memory": "24GiB", "bandwidth": "1", "tflops": "nan"}, "tflops 'nan' is not a size"),
    ],
)
def test_custom_says_what_is_missing(given_: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        custom(**given_)
    assert words in str(caught.value)
