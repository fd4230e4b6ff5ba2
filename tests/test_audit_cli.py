"""``audit`` as typed: keys of its JSON, exit codes, several files, names, targets and budgets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from configurator import audit
from configurator.cli import main

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 131072, "dtype": "bfloat16",
}  # fmt: skip
KEYS = (
    "projection", "n_heads", "n_kv_heads", "d_head", "kv_layers", "kv_bytes_per_token",
    "kv_bytes_per_token_past_window", "kv_bytes_at_context", "kv_bytes_per_rank", "valid_tp",
    "params_total", "params_active_per_token", "max_context", "max_batch", "total_layers",
    "kv_fixed_bytes_per_sequence", "kv_bytes_per_token_per_rank", "layer_groups", "rules",
    "warnings",
)  # fmt: skip


@pytest.fixture
def llama(tmp_path: Path) -> str:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_8B))
    return str(file)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["audit", *words])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code, out, _ = said(capsys, *words, "--format", "json")
    return code, json.loads(out)


def test_every_key_of_the_answer_is_there(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, llama)
    assert code == 0
    assert [key for key in KEYS if key not in found] == []
    assert found["source"] == llama
    assert found["context"] == 131_072  # the model's own longest
    assert found["kv_bytes_per_token"] == 2 * 32 * 8 * 128 * 2
    assert found["valid_tp"] == {
        "sharded": [1, 2, 4, 8],
        "with_kv_replication": [1, 2, 4, 8, 16],
    }
    assert [group["layers"] for group in found["layer_groups"]] == [32]
    assert (
        sum(g["kv_bytes_at_context"] for g in found["layer_groups"])
        == (found["kv_bytes_at_context"])
    )


@pytest.mark.parametrize(
    ("kv", "token"),
    [("fp32", 262_144), ("fp16", 131_072), ("fp8", 65_536), ("int8", 65_536), ("q8_0", 69_632),
     ("q5_1", 49_152), ("q4_0", 36_864), ("nvfp4", 36_864), ("k=q8_0,v=q4_0", 53_248)],
)  # fmt: skip
def test_cache_types_by_block(
    kv: str, token: int, llama: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # 65,536 values a token: q8_0 34 bytes per 32, q5_1 24, q4_0 18, nvfp4 9 per 16.
    _, found = document(capsys, llama, "--kv-dtype", kv, "--context", "1k")
    assert found["kv_bytes_per_token"] == token
    assert found["kv_bytes_at_context"] == token * 1024


def test_pages_are_counted_only_when_asked(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    token = 131_072
    _, plain = document(capsys, llama, "--context", "1001", "--batch", "2")
    assert plain["kv_bytes_at_context"] == 2 * 1001 * token
    _, paged = document(capsys, llama, "--context", "1001", "--batch", "2", "--page-size", "16")
    assert paged["kv_bytes_at_context"] == 2 * 1008 * token
    assert paged["bytes_per_block"] == 16 * token
    assert paged["request"]["blocks"] == 63


def test_ranks_and_their_copies(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, llama, "--context", "1k", "--tensor-parallel", "16")
    assert code == 0
    # 16 ranks hold one of 8 KV heads each, so every head is kept twice.
    assert found["kv_bytes_per_rank"] == [2 * 32 * 128 * 2 * 1024] * 16
    assert found["tp_verdicts"]["16"] == "allowed with each KV head copied on 2 ranks"
    code, found = document(capsys, llama, "--context", "1k", "--tensor-parallel", "3")
    assert code == 1
    assert found["kv_bytes_per_rank"] is None
    assert "32 query heads are not a multiple of 3" in found["tp_verdicts"]["3"]


def test_what_fits_on_a_target(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, llama, "--target", "h100-sxm", "--context", "8k")
    assert code == 0
    assert found["fits"] is True
    assert found["weights_bytes"] == 2 * 8_030_261_248
    token = found["kv_bytes_per_token"]
    assert found["max_context"] == found["kv_budget_bytes"] // token
    assert found["max_batch"] == found["kv_budget_bytes"] // (8192 * token)
    code, found = document(capsys, llama, "--target", "h100-sxm", "--context", "8k",
                           "--batch", str(found["max_batch"] + 1))  # fmt: skip
    assert code == 1
    assert found["fits"] is False


def test_a_target_of_28_devices_uses_ranks_that_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_8B | {"num_attention_heads": 28, "head_dim": 128,
                                           "num_key_value_heads": 4}))  # fmt: skip
    code, found = document(capsys, str(file), "--target", "8xh100-sxm", "--context", "8k")
    assert code == 0
    assert found["tensor_parallel"] == 4
    assert any("8 devices as ranks are refused" in w for w in found["warnings"])


def test_a_budget_in_place_of_a_target(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, llama, "--kv-budget", "1GiB", "--page-size", "16",
                           "--context", "4k")  # fmt: skip
    assert code == 0
    assert found["blocks"] == 2**30 // (16 * 131_072)
    assert found["max_context"] == 8192
    assert found["max_batch"] == 2
    assert document(capsys, llama, "--kv-budget", "1MiB", "--context", "4k")[0] == 1


def test_rules_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mha = {k: v for k, v in LLAMA_8B.items() if k != "num_key_value_heads"}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(mha))
    _, found = document(capsys, str(file), "--context", "128k")
    for name in ("id", "severity", "verdict", "message", "source", "evidence"):
        assert all(name in rule for rule in found["rules"])
    assert any("MHA" in r["message"] and r["verdict"] != "holds" for r in found["rules"])


def test_several_are_compared(llama: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, llama, "qwen3-8b", "--context", "32k")
    assert code == 0
    assert [row["source"] for row in found["rows"]] == [llama, "qwen3-8b"]
    assert [row["kv_bytes_per_token"] for row in found["rows"]] == [131_072, 2 * 36 * 8 * 128 * 2]
    code, text, _ = said(capsys, llama, "qwen3-8b", "--context", "32k")
    assert code == 0
    assert "keeps the smallest cache at 32,768 tokens" in text


def test_markdown_and_files(llama: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "audit.md"
    code, out, err = said(capsys, llama, "--output", str(report))
    assert (code, out, err) == (0, "", f"wrote {report}\n")
    text = report.read_text()
    assert text.startswith("# Audit of ")
    assert "| " in text
    assert "8,030,261,248" in text
    said(capsys, llama, "--output", str(report))
    assert report.read_text() == text


def test_the_table_says_where_the_bytes_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = said(capsys, "gemma-2-9b", "--context", "32k", "--format", "markdown")
    assert code == 0
    assert "window of 4,096" in text
    assert "full attention" in text


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("-", "-"), "standard input can be read once"),
        (("qwen3-8c",), "nearest models: qwen3-8b"),
        (("qwen3-8b", "--format", "yaml"), "unknown format 'yaml'"),
        (("qwen3-8b", "--kv-dtype", "fp7"), "unknown kv-dtype"),
        (("qwen3-8b", "--batch", "many"), "'many' is not a whole number"),
        (("qwen3-8b", "--batch", "-1"), "batch -1 must be a whole number from 1"),
        (("qwen3-8b", "--kv-dtype", "fp8_ds_mla"), "MLA's latents"),
    ],
)
def test_wrong_questions(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, *words)
    assert code == 2
    assert out == ""
    assert part in err
    assert len(err.splitlines()) == 1


def test_the_whole_process_with_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "configurator", "audit", "-", "--format", "json"],
        input=json.dumps(LLAMA_8B), capture_output=True, text=True, timeout=120,
        cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["params_total"] == 8_030_261_248


def beyond(**config: Any) -> list[str]:
    """What an audit says of 100,000 tokens."""
    found = audit({**LLAMA_8B, "max_position_embeddings": 32_768, **config}, context=100_000)
    return [text for text in found.warnings if "positions" in text]


_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({}, "32,768 positions that the model states:"),
        ({"rope_scaling": None}, "32,768"),
        ({"rope_scaling": {**_YARN, "factor": 2.0}}, "65,536 positions that the model states aft"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "65,536"),
        ({"rope_scaling": {**_YARN, "factor": "4", "original_max_position_embeddings": []}}, "32,"),
        ({"rope_scaling": {**_YARN, "factor": True}}, "32,768"),
        # Llama 3.1 states the length it was extended to: 8 x 8,192 is less.
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                           "original_max_position_embeddings": 8192}}, "65,536"),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0},
                              "sliding_attention": {"rope_type": "default"}}}, "65,536"),
    ],
    ids=str,
)  # fmt: skip
def test_a_context_beyond_the_positions_is_a_warning(config: dict[str, Any], limit: str) -> None:
    (text,) = beyond(**config)
    assert f"context 100,000 is beyond the {limit}" in text


@pytest.mark.parametrize(
    "config",
    [
        {"max_position_embeddings": 131_072},
        {"rope_scaling": _YARN},
        {"rope_scaling": {"type": "dynamic", "factor": 4.0}},
        {"rope_parameters": _YARN},
        {"max_position_embeddings": None},
    ],
    ids=str,
)
def test_a_context_that_positions_or_their_scaling_reach_is_none(config: dict[str, Any]) -> None:
    assert beyond(**config) == []


def test_gemma_3_states_positions_that_are_scaled_already() -> None:
    config = {"model_type": "gemma3_text", "max_position_embeddings": 32_768, "head_dim": 128,
              "rope_scaling": {"rope_type": "linear", "factor": 8.0}}  # fmt: skip
    assert "beyond the 32,768" in beyond(**config)[0]


def test_the_catalogs_positions_count_too() -> None:
    assert any("beyond the 40,960" in w for w in audit("qwen3-8b", context="128k").warnings)
    assert not any("beyond" in w for w in audit("llama-3.1-8b", context="128k").warnings)
    assert not any("beyond" in w for w in audit("qwen3-8b").warnings)


def test_one_token_is_one_token(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "qwen3-8b", "--context", "1")
    assert "at 1 token in bf16" in " ".join(out.split())
    assert main(["recommend", "--params", "125M", "--context", "1"]) == 0
    assert "for 1 sequence of 1 token " in " ".join(capsys.readouterr().out.split())


def test_more_ranks_than_devices_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As in every command: half the weights would be counted otherwise."""
    code, _, err = said(capsys, "qwen3-8b", "--tensor-parallel", "8", "--target", "4xh100-sxm")
    assert code == 2
    assert "name 8xh100-sxm5-80gb" in err
