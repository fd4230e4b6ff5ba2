"""This machine as a target: facts from files, a profile that is kept, a card behind a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from configurator.core.errors import MissingError, UsageError
from configurator.host import (
    Accelerator,
    Host,
    Profile,
    detect,
    fingerprint,
    host_device,
    load_profile,
    match,
    profile_path,
    save_profile,
)
from configurator.host_facts import available_bytes, nvidia, size

GIB = 2**30


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def files(root, **contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def machine(root):
    """A machine with two cores that share a last-level cache, as Linux describes it."""
    files(
        root,
        **{
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\n"
            "cpu MHz\t\t: 2500.000\nflags\t\t: fpu avx2 avx512f amx_bf16\n",
            "proc/meminfo": "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n",
        },
    )
    for cpu in (0, 1):
        base = f"sys/devices/system/cpu/cpu{cpu}/cache"
        for index, level, kind, bytes_, shared in (
            (0, "1", "Data", "48K", str(cpu)),
            (1, "1", "Instruction", "32K", str(cpu)),
            (2, "2", "Unified", "2048K", str(cpu)),
            (3, "3", "Unified", "36864K", "0-1"),
        ):
            files(
                root,
                **{
                    f"{base}/index{index}/level": level,
                    f"{base}/index{index}/type": kind,
                    f"{base}/index{index}/size": bytes_,
                    f"{base}/index{index}/shared_cpu_list": shared,
                },
            )
    return root


def facts(**changes):
    base = Host(
        system="Linux", machine="x86_64", cpu="Intel Some CPU", cores=4, memory_bytes=16 * GIB,
        caches_bytes=((1, 98304), (2, 4 << 20), (3, 36 << 20)), features=("avx512f", "amx_bf16"),
        clock_hz=2.5e9,
    )  # fmt: skip
    return replace(base, **changes)


def profile(host, **changes):
    base = Profile(
        fingerprint=fingerprint(host), created="2026-01-31", device="cpu", read_bytes_per_s=3e10,
        copy_bytes_per_s=2e10, flops_per_s={"fp32": 2e11, "bf16": 1e12},
        coefficients={"host.calibrated": 1.0, "host.decode.kv.bf16.floor_s": 1e-4},
        error={"decode": 0.12}, environment={"torch": "2.13.0"},
    )  # fmt: skip
    return replace(base, **changes)


# --- facts ---------------------------------------------------------------------------------


def test_facts_are_read_from_the_system(tmp_path):
    found = detect(machine(tmp_path), run=lambda command: "")
    assert found.cpu == "Some CPU @ 2.50GHz"
    assert found.memory_bytes == 16 * GIB
    # two own caches of 48 KiB and 2 MiB, one shared of 36 MiB; instructions are left out
    assert found.caches_bytes == ((1, 2 * 49152), (2, 2 * 2097152), (3, 36 << 20))
    assert found.last_level_cache_bytes == 36 << 20
    assert found.features == ("amx_bf16", "avx512f", "avx2")
    assert found.clock_hz == 2.5e9
    assert found.accelerators == ()


def test_a_container_limits_memory(tmp_path):
    machine(tmp_path)
    files(
        tmp_path,
        **{"sys/fs/cgroup/memory.max": str(4 * GIB), "sys/fs/cgroup/memory.current": str(GIB)},
    )
    assert detect(tmp_path, run=lambda command: "").memory_bytes == 4 * GIB
    assert available_bytes(tmp_path) == 3 * GIB


def test_a_container_without_a_limit(tmp_path):
    files(machine(tmp_path), **{"sys/fs/cgroup/memory.max": "max"})
    assert detect(tmp_path, run=lambda command: "").memory_bytes == 16 * GIB
    assert available_bytes(tmp_path) == 8 * GIB


def test_a_share_of_processor_time_limits_cores(tmp_path):
    files(machine(tmp_path), **{"sys/fs/cgroup/cpu.max": "100000 100000"})
    assert detect(tmp_path, run=lambda command: "").cores == 1


def test_what_cannot_be_read_stays_unknown(tmp_path):
    found = detect(tmp_path, run=lambda command: "")
    assert (found.memory_bytes, found.caches_bytes, found.clock_hz) == (0, (), 0.0)
    assert found.last_level_cache_bytes == 0
    assert available_bytes(tmp_path, run=lambda command: "") == 0


@pytest.mark.parametrize(
    ("text", "bytes_"), [("48K", 49152), ("2M", 2 << 20), ("1G", GIB), ("12", 12), ("x", 0)]
)
def test_sizes(text, bytes_):
    assert size(text) == bytes_


def test_cards_from_the_driver():
    text = (
        "NVIDIA H100 80GB HBM3, 81559 MiB, 9.0\nNVIDIA H100 80GB HBM3, 81559 MiB, 9.0\nnonsense\n"
    )
    assert nvidia(text) == (
        Accelerator(
            kind="cuda", name="NVIDIA H100 80GB HBM3", memory_bytes=81559 << 20, count=2,
            architecture="sm_90",
        ),
    )  # fmt: skip
    assert nvidia("") == ()


def test_a_driver_is_asked_for_cards(tmp_path):
    def run(command):
        return "Tesla T4, 15360 MiB, 7.5\n" if command[0] == "nvidia-smi" else ""

    (card,) = detect(machine(tmp_path), run=run).accelerators
    assert (card.kind, card.name, card.architecture) == ("cuda", "Tesla T4", "sm_75")


def test_free_memory_on_a_mac(tmp_path):
    text = (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
        "Pages free:                   1000.\nPages active:  5.\nPages inactive:  500.\n"
    )
    assert available_bytes(tmp_path, run=lambda command: text) == 1500 * 16384


# --- the catalog's card behind a driver's name ---------------------------------------------


@pytest.mark.parametrize(
    ("name", "mib", "device"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 81559, "h100-pcie-80gb"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm4-80gb"),
        ("NVIDIA H200", 143771, "h200-sxm-141gb"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "rtx-4070-ti-super"),
        ("NVIDIA L40S", 46068, "l40s"),
        ("Tesla T4", 15360, "t4"),
        ("Apple M2", 0, "apple-m2"),
    ],
)
def test_cards_in_the_catalog(name, mib, device):
    assert match(name, mib << 20).name == device


def test_a_card_that_is_not_in_the_catalog():
    assert match("NVIDIA GeForce GTX 1080", 8 << 30) is None


# --- the profile ---------------------------------------------------------------------------


def test_the_profile_is_kept_and_read_again(tmp_path):
    kept = profile(facts())
    path = save_profile(kept)
    assert path == profile_path() == tmp_path / "config" / "mha-configurator" / "host.json"
    assert load_profile() == kept
    assert sorted(p.name for p in path.parent.iterdir()) == ["host.json"]


def test_without_a_profile_there_is_none():
    assert load_profile() is None


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', "{", '{"version": 1, "x": 2}'])
def test_a_broken_profile_is_named(text):
    path = profile_path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(UsageError, match=r"host\.json is not a profile .* run calibrate"):
        load_profile()


def test_figures_of_a_profile_are_numbers():
    path = save_profile(profile(facts()))
    values = json.loads(path.read_text())
    values["coefficients"]["host.calibrated"] = "1"
    path.write_text(json.dumps(values))
    with pytest.raises(UsageError, match="is not a profile"):
        load_profile()


@pytest.mark.parametrize(
    "damage",
    [
        {"read_bytes_per_s": 0.0},
        {"copy_bytes_per_s": -1.0},
        {"flops_per_s": {"fp32": float("nan")}},
        {"error": {"decode": float("inf")}},
        {"coefficients": []},
        {"environment": "torch"},
        {"fingerprint": None},
    ],
    ids=str,
)
def test_a_figure_that_cannot_be_is_no_profile(damage):
    path = save_profile(profile(facts()))
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(UsageError, match="is not a profile"):
        load_profile()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"[" * 100_000])
def test_bytes_that_are_no_text_are_no_profile(data):
    path = save_profile(profile(facts()))
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is not a profile"):
        load_profile()


def test_a_profile_of_another_version_is_left_alone():
    save_profile(profile(facts(), version=0))
    assert load_profile() is None


def test_a_place_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"cannot be written .* set XDG_CONFIG_HOME"):
        save_profile(profile(facts()))


# --- the device ----------------------------------------------------------------------------


def test_without_a_profile_rates_are_priors_and_say_so():
    found = host_device(facts())
    assert found.name == "host"
    assert not found.verified
    assert found.bandwidth_bytes_per_s == 4 * 12e9
    # 4 cores x 2.5 GHz x 64 FLOPs of two AVX-512 units, 1024 of AMX
    assert found.flops_per_s == {"fp32": 6.4e11, "bf16": 1.024e13}
    assert found.cache_bytes == 36 << 20
    assert "run calibrate" in found.note


def test_many_cores_do_not_raise_the_prior_beyond_two_channels():
    assert host_device(facts(cores=64)).bandwidth_bytes_per_s == 51.2e9


def test_with_its_profile_the_machine_is_measured():
    save_profile(profile(facts()))
    found = host_device(facts())
    assert found.verified
    assert found.bandwidth_bytes_per_s == 3e10
    assert found.flops_per_s["fp32"] == 2e11
    assert found.coefficients["host.calibrated"] == 1.0
    assert found.coefficients["own.decode.error"] == 0.12
    assert found.sources == ("measured on this machine by calibrate, 2026-01-31",)


def test_the_profile_of_another_machine_is_not_used():
    save_profile(profile(facts(cpu="Another")))
    found = host_device(facts())
    assert not found.verified
    assert found.coefficients == {}
    assert found.note.endswith("the kept profile is of another machine")


def test_a_card_is_the_host_unless_the_processor_was_calibrated():
    card = Accelerator(kind="cuda", name="NVIDIA L40S", memory_bytes=46068 << 20, count=2)
    with_card = facts(accelerators=(card,))
    found = host_device(with_card)
    assert (found.kind, found.count, found.architecture) == ("datacenter-gpu", 2, "sm_89")
    assert found.memory_bytes == 46068 << 20
    assert "figures of l40s from the catalog" in found.note
    assert host_device(with_card, profile(with_card)).kind == "cpu-server"
    assert host_device(with_card, profile(with_card, device="cuda")).kind == "datacenter-gpu"


def test_an_unknown_card_leaves_the_processor():
    card = Accelerator(kind="cuda", name="NVIDIA GeForce GTX 1080")
    assert host_device(facts(accelerators=(card,))).kind == "cpu-server"


def test_a_mac_has_the_memory_of_the_whole_machine():
    card = Accelerator(kind="mps", name="Apple M2")
    found = host_device(facts(accelerators=(card,), memory_bytes=8 * GIB))
    assert found.memory_bytes == 8 * GIB


def test_memory_that_is_not_known_is_not_guessed():
    with pytest.raises(MissingError, match="--memory"):
        host_device(facts(memory_bytes=0))


def test_another_machine_has_another_fingerprint():
    assert fingerprint(facts()) == fingerprint(facts(memory_bytes=1))
    assert fingerprint(facts()) != fingerprint(facts(cores=8))


def test_this_machine_is_described():
    found = host_device()
    assert found.memory_bytes > 0
    assert found.n_units >= 1


def test_the_host_is_known_without_torch():
    code = (
        "import sys; from configurator.host import host_device; host_device(); "
        "print(sorted(m for m in ('torch', 'pydantic', 'matplotlib') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.strip() == "[]"
