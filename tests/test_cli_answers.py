"""Answers on the command line: formats, files, exit codes 0 and 1, and what can be run again."""

from __future__ import annotations

import json
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from configurator.cli import main
from configurator.cli.output import write_whole
from configurator.schema import report_schema


def answer(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> str:
    assert main(shlex.split(line)) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_json(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> dict[str, object]:
    found = json.loads(answer(capsys, f"{line} --format json", code))
    assert isinstance(found, dict)
    return found


SMALL = "recommend --params 350M --context 4k --target rtx-4090"
LLAMA = "--d-model 4096 --n-layers 32 --n-heads 32 --n-kv-heads 8 --d-head 128"


def test_recommend_in_every_format_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    report = as_json(capsys, SMALL)
    jsonschema.validate(report, report_schema())
    per_token = report["cache"]["bytes_per_token"]
    recommended = report["recommendation"]
    assert recommended["d_head"] == 64  # heads of 64 below a width of 1,024, and at 1,024 16 of 64
    parameters = f"{recommended['params_total']:,} parameters"
    for name in ("terminal", "markdown", "html"):
        text = " ".join(answer(capsys, f"{SMALL} --format {name}").split())
        assert parameters in text
        assert f"{per_token // 1024} KiB per token" in text


def test_json_has_every_key_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    report = as_json(capsys, SMALL)
    keys = {
        "recommendation": "projection n_heads n_kv_heads d_head d_model n_layers d_ff feed_forward "
        "vocab_size kv_lora_rank q_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim "
        "params_total reason",
        "cache": "bytes_per_token_per_layer_fp16 bytes_per_token bytes_total fits max_context "
        "max_batch",
        "memory": "weights_bytes cache_bytes reserve_bytes capacity_bytes",
        "latency": "decode_s prefill_s bound regime error",
        "quality": "penalty_nats error_nats",
    }
    for block, names in keys.items():
        assert set(names.split()) <= set(report[block]), block
    top = "request sensitivity initialization test_hook alternatives rules precedents "
    assert set((top + "measurements command version").split()) <= set(report)
    rule_keys = {"id", "severity", "verdict", "message", "source", "evidence"}
    assert all(rule_keys == set(rule) for rule in report["rules"])
    assert {"kind", "n_experts", "experts_per_token"} <= set(
        report["recommendation"]["feed_forward"]
    )


@pytest.mark.parametrize(
    "line",
    [
        SMALL,
        "recommend --params 3B --context 8k --memory 16GiB --bandwidth 100GB/s --tflops 4",
        "recommend --params 1B --context 8k --window 1k --full-every 4 --kv-dtype fp8 --batch 3",
        f"check {LLAMA} --context 32k --target h100-sxm --page-size 16",
        f"compare {LLAMA} --context 8k",
        "compare --params 1B --context 8k --d-head 64 --untie-embeddings",
    ],
)
def test_the_command_of_an_answer_gives_that_answer(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = as_json(capsys, line)
    command = str(first["command"]).removeprefix("mha-configurator ")
    assert as_json(capsys, command) == first


def test_exit_1_when_nothing_fits_and_the_report_is_still_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = as_json(capsys, "recommend --params 7B --context 1M --target rtx-4090", code=1)
    assert report["fits"] is False
    assert report["cache"]["fits"] is False
    assert len(report["remedies"]) >= 3
    jsonschema.validate(report, report_schema())


def test_compare_says_no_where_none_of_its_rows_fits(capsys: pytest.CaptureFixture[str]) -> None:
    rows = as_json(capsys, "compare --params 70B --target rtx-3060 --context 8k", code=1)["rows"]
    assert not any(row["cache"]["fits"] for row in rows)
    rows = as_json(capsys, "compare --params 7B --target rtx-4090 --context 128k")["rows"]
    assert {row["cache"]["fits"] for row in rows} == {True, False}


def test_check_has_rules_and_cost_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, f"check {LLAMA} --context 32k --target h100-sxm")
    assert found["ok"] is True
    # 2 x 8 heads x 128 x 2 bytes = 4,096 a layer and 128 KiB over 32 layers: Llama 3 8B.
    assert found["cache"]["bytes_per_token_per_layer_fp16"] == 4096
    assert found["cache"]["bytes_per_token"] == 131072
    assert found["cache"]["bytes_total"] == 131072 * 32768
    assert {"memory", "latency", "quality", "recommendation", "rules"} <= set(found)


def test_check_says_no_to_heads_that_do_not_divide(capsys: pytest.CaptureFixture[str]) -> None:
    line = "check --d-model 4096 --n-layers 32 --n-heads 30 --n-kv-heads 8 --d-head 128"
    found = as_json(capsys, line, code=1)
    assert found["ok"] is False
    broken = [r["id"] for r in found["rules"] if r["verdict"] == "broken"]
    assert "shape/kv-heads-divide-heads" in broken


def test_check_of_a_budget_judges_what_is_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--params 236B --active-params 21B --context 8k"
    judged = as_json(capsys, f"check {asked}")
    advised = as_json(capsys, f"recommend {asked}")
    assert judged["recommendation"] == advised["recommendation"]
    assert judged["rules"] == advised["rules"]


def test_compare_refuses_heads_that_cannot_be_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--d-model", "4096", "--n-heads", "32", "--n-kv-heads", "5"]) == 2
    assert "n-heads 32 is not a multiple of n-kv-heads 5" in capsys.readouterr().err


def test_compare_has_a_row_for_each_divisor_and_mla(capsys: pytest.CaptureFixture[str]) -> None:
    rows = as_json(capsys, f"compare {LLAMA} --context 8k")["rows"]
    heads = [r["recommendation"]["n_kv_heads"] for r in rows]
    assert heads[:6] == [32, 16, 8, 4, 2, 1]
    assert [r["recommendation"]["projection"] for r in rows] == [
        "MHA", "GQA", "GQA", "GQA", "GQA", "MQA", "MLA",
    ]  # fmt: skip
    sizes = [r["cache"]["bytes_per_token"] for r in rows[:6]]
    assert sizes == sorted(sizes, reverse=True)


def test_output_goes_to_a_file_whole_and_by_its_suffix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, start in (("r.md", "# Attention"), ("r.json", "{"), ("r.html", "<!doctype html>"),
                        ("r.txt", "")):  # fmt: skip
        assert main([*SMALL.split(), "--output", str(tmp_path / name)]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"wrote {tmp_path / name}\n"
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert "\x1b" not in (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.html", "r.json", "r.md", "r.txt"]


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.md"
    target.write_text("old", encoding="utf-8")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_whole(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    write_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"
    assert real.stat().st_mode & 0o777 == 0o640
    dangling = tmp_path / "dangling.md"
    dangling.symlink_to(tmp_path / "later.md")
    write_whole(dangling, "there")
    assert (tmp_path / "later.md").read_text(encoding="utf-8") == "there"


def test_a_link_that_leads_to_itself_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = tmp_path / "loop.md"
    loop.symlink_to(loop)
    assert main([*SMALL.split(), "--output", str(loop)]) == 2
    assert capsys.readouterr().err == f"error: {loop}: a link that leads to itself\n"
    assert loop.is_symlink()


def test_what_is_no_file_is_written_to_and_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text, encoding="utf-8")
        assert main([*SMALL.split(), "--format", "json", "--output", str(pipe)]) == 0
        assert json.loads(read.result(timeout=60))["recommendation"]
    assert pipe.is_fifo()
    assert main([*SMALL.split(), "--output", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()
    capsys.readouterr()


def test_a_place_that_cannot_be_written_is_named_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.md"

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "something.partial")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert main([*SMALL.split(), "--output", str(target)]) == 2
    assert capsys.readouterr().err == f"error: {target}: Permission denied\n"


def test_markdown_is_stable(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, f"{SMALL} --format markdown") == answer(
        capsys, f"{SMALL} --format markdown"
    )


def test_targets_list_search_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert "h100-sxm5-80gb" in answer(capsys, "targets")
    found = [t["name"] for t in as_json(capsys, "targets jetson")["targets"]]
    assert len(found) >= 3
    assert all("jetson" in name for name in found)
    one = as_json(capsys, "targets h100-sxm")
    assert one["name"] == "h100-sxm5-80gb"
    assert one["figures"]["memory_gib"]["value"] == 80
    assert one["sources"]
    assert as_json(capsys, "targets 4xh100-sxm")["count"] == 4


def test_this_machine_is_a_target_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # no profile: nothing was measured
    shown = as_json(capsys, "targets host")
    assert shown["name"] == "host"
    assert shown["figures"]["memory_gib"]["verified"] is True
    assert shown["figures"]["bandwidth_gb_s"]["verified"] is False
    assert "calibrate" in answer(capsys, "targets host")
    report = as_json(capsys, "recommend --params 125M --context 1k --target host")
    assert report["memory"]["capacity_bytes"] == shown["memory_bytes"]


def test_an_unverified_target_is_marked_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert "rtx-3060-12gb *" in answer(capsys, "targets 3060")
    assert "*" in answer(capsys, "targets rtx-3060")
    text = answer(capsys, "recommend --params 125M --context 2k --target rtx-3060")
    assert "rtx-3060-12gb were not verified at a source" in text


def test_a_target_file_is_shown_and_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "memory_gib = 24\nbandwidth_gb_s = 1000\nbf16_dense_tflops = 165\n", encoding="utf-8"
    )
    assert as_json(capsys, f"targets {file}")["name"] == "mine"
    report = as_json(capsys, f"recommend --params 1B --context 8k --target {file}")
    assert report["memory"]["capacity_bytes"] == 24 * 2**30


def test_models_list_search_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert "llama-3-8b" in answer(capsys, "models")
    one = as_json(capsys, "models llama-3-8b")
    assert one["total_params"] == 8_030_261_248  # as published
    assert one["sources"]
    assert "kv_lora_rank" not in one  # 0 in the catalog means that there is none
    assert as_json(capsys, "models 'Llama 3 8B'") == one
    assert {m["projection"] for m in as_json(capsys, "models mla")["models"]} >= {"MLA"}


def test_what_is_not_honoured_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    report = as_json(capsys, "recommend --params 350M --context 4k --projection mla")
    assert report["recommendation"]["projection"] != "MLA"
    assert any("--benchmarking" in w for w in report["warnings"])
