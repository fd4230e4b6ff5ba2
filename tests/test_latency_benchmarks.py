"""The scripts that fit and judge: their JSON, names never seen, and rows they cannot use."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from configurator.catalog.targets import device
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.latency import predict_latency

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
COLUMNS = ["device", "framework", "framework_version", "op", "kernel", "batch", "query_len",
           "context", "n_heads", "n_kv_heads", "d_head", "kv_lora_rank", "rope_dim", "window",
           "kv_dtype", "latency_us"]  # fmt: skip


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import latency_accuracy
    import timed_rows

    yield latency_accuracy, timed_rows
    for name in ("latency_accuracy", "timed_rows", "decision", "fit_latency", "step_accuracy"):
        sys.modules.pop(name, None)


def made_up(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(dict.fromkeys(COLUMNS, 0) | r for r in rows)
    return str(path)


def decode_rows(name, kernel, times, target="h200-sxm", **fields):
    return [
        {
            "device": name, "framework": "vllm", "op": "decode", "kernel": kernel, "batch": 4,
            "query_len": 1, "context": 512 * 2**i, "n_heads": 32, "n_kv_heads": kv, "d_head": 128,
            "kv_dtype": "bfloat16",
            "latency_us": 1e6 * times * predict_latency(
                GroupedQuery(d_model=1, n_heads=32, n_kv_heads=kv, d_head=128),
                device(target), batch=4, context=512 * 2**i, warm=True,
            ),
        } | fields
        for i in range(8)
        for kv in (1, 8)
    ]  # fmt: skip


def test_document_has_the_three_models_side_by_side(scripts, tmp_path, capsys):
    accuracy, _ = scripts
    data = made_up(tmp_path / "x.csv", decode_rows("h200_sxm", "vllm_flash_attn_fa3", 1.25))
    assert accuracy.main(["--data", data, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["model"] for r in rows] == ["ours", "roofline", "fixed"]
    assert {(r["device"], r["kernel"], r["phase"], r["n"]) for r in rows} == {
        ("h200_sxm", "vllm_flash_attn_fa3", "decode", 16)
    }
    ours = rows[0]
    assert ours["median_error"] == pytest.approx(0.2, abs=1e-3)  # 1 / 1.25 - 1
    assert ours["p90_error"] == pytest.approx(0.2, abs=1e-3)
    assert ours["tau"] == pytest.approx(1.0)
    assert rows[1]["median_error"] > 0.3


def test_kernels_and_devices_never_seen_are_judged_or_named(scripts, tmp_path, capsys):
    accuracy, _ = scripts
    rows = decode_rows("h200_sxm", "brand_new", 1.0)
    rows += decode_rows("b200_sxm", "vllm_flashinfer_flashinfertrtllmapidecode", 1.0)
    rows += decode_rows("nobodys_gpu", "x", 1.0)
    rows += decode_rows("h200_sxm", "x", 1.0, op="moe")
    rows += decode_rows("h200_sxm", "x", 1.0, kv_dtype="fp5")
    data = made_up(tmp_path / "x.csv", rows)
    assert accuracy.main(["--data", data, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert {r["device"] for r in json.loads(out)["rows"]} == {"h200_sxm", "b200_sxm"}
    assert "16 rows skipped: device 'nobodys_gpu' is not in the catalog" in err
    assert "16 rows skipped: op 'moe' is none of decode" in err
    assert "16 rows skipped: kv_dtype 'fp5'" in err


def test_file_without_a_usable_row_is_a_clean_refusal(scripts, tmp_path, capsys):
    accuracy, _ = scripts
    data = made_up(tmp_path / "x.csv", decode_rows("nobodys_gpu", "x", 1.0))
    assert accuracy.main(["--data", data]) == 2
    assert "no usable rows" in capsys.readouterr().err


def test_decision_names_pairs_right(scripts, tmp_path, capsys):
    accuracy, _ = scripts
    data = made_up(tmp_path / "x.csv", decode_rows("h200_sxm", "vllm_flash_attn_fa3", 1.0))
    assert accuracy.main(["--data", data, "--decision", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["decision"]
    total = next(r for r in rows if r["device"] == "all")
    assert total["ours"] == 1.0
    assert 1 <= total["n"] <= 8


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("h200_sxm", "h200-sxm-141gb"), ("b200_sxm", "b200-sxm"), ("gb200", "gb200"),
        ("rtx_pro_6000_server", "rtx-pro-6000-server"), ("l4", "l4"), ("l40s", "l40s"),
        ("a100_sxm", "a100-sxm4-80gb"), ("a100_pcie", "a100-pcie-80gb"), ("b60", "arc-pro-b60"),
        ("RTX4090", "rtx-4090"), ("mi300x", "mi300x"), ("h20_unknown", None),
    ],
)  # fmt: skip
def test_names_in_files_lead_to_targets(scripts, name, found):
    _, timed = scripts
    target = timed.find_device(name)
    assert (target.name if target else None) == found


def test_fit_moves_towards_the_rows(scripts, tmp_path):
    from fit_latency import fit_stage

    _, timed = scripts
    data = made_up(
        tmp_path / "x.csv", decode_rows("h100_sxm", "vllm_flash_attn_fa3", 1.5, "h100-sxm")
    )
    groups = timed.load(data)
    values = fit_stage(groups, lambda k: k in ("decode.share", "decode.floor_us"), {})
    before = np.abs(np.log(groups[0].predict({}) / groups[0].seconds)).mean()
    after = np.abs(np.log(groups[0].predict(values) / groups[0].seconds)).mean()
    assert after < before
