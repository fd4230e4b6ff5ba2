"""``export`` as typed: what goes where, what is refused, and the way back through ``audit``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from configurator.cli import main
from configurator.interop.export import formats

GEOMETRY = ["--d-model", "4096", "--n-heads", "32", "--n-kv-heads", "8", "--n-layers", "32",
            "--d-ff", "14336", "--vocab-size", "128256", "--untie-embeddings"]  # fmt: skip
MLA = ["--d-model", "2048", "--n-heads", "16", "--kv-lora-rank", "512", "--q-lora-rank", "768",
       "--n-layers", "27", "--d-ff", "6144", "--vocab-size", "102400"]  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def audited(capsys: pytest.CaptureFixture[str], path: str) -> dict[str, Any]:
    code, out, _ = said(capsys, "audit", path, "--format", "json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_geometry_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    code, out, err = said(capsys, "export", *GEOMETRY, "--output", str(file))
    assert (code, out, err) == (0, "", f"wrote {file}\n")
    back = audited(capsys, str(tmp_path))
    # Llama 3 8B: 8,030,261,248 parameters, 131,072 bytes a token.
    assert (back["params_total"], back["kv_bytes_per_token"]) == (8_030_261_248, 131_072)
    assert (back["n_heads"], back["n_kv_heads"], back["d_head"]) == (32, 8, 128)


def test_a_latent_and_back_through_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = said(capsys, "export", *MLA, "--to", "hf", "--format", "json")
    assert code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    back = audited(capsys, "-")
    assert back["projection"] == "MLA"
    assert back["d_head"] == {"latent": 576, "qk": 192, "v": 128}


@pytest.mark.parametrize(
    "budget",
    [
        ["--params", "7B", "--context", "32k", "--target", "h100-sxm"],
        ["--params", "350M"],
        ["--params", "1.3B", "--window", "1k", "--full-every", "4"],
        ["--params", "30B", "--active-params", "3B", "--target", "8xh100-sxm"],
        ["--params", "70B", "--projection", "mla", "--target", "8xh100-sxm"],
    ],
)
def test_a_recommendation_and_back(
    budget: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, out, _ = said(capsys, "recommend", *budget, "--format", "json")
    report = json.loads(out)
    recommended = report["recommendation"]
    file = tmp_path / "c.json"
    assert said(capsys, "export", *budget, "--output", str(file))[0] == 0
    back = audited(capsys, str(file))
    for name in ("projection", "n_heads", "n_kv_heads", "d_model", "vocab_size", "params_total"):
        assert back[name] == recommended[name], name
    assert back["kv_bytes_per_token"] == report["cache"]["bytes_per_token"]
    assert back["params_active_per_token"] == recommended["params_active"]


@pytest.mark.parametrize("to", sorted(formats()))
def test_each_format_writes_a_recommendation(
    to: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = said(capsys, "export", "--params", "3B", "--to", to)
    assert code == 0
    assert out.endswith("\n")
    code, text, _ = said(capsys, "export", "--params", "3B", "--to", to, "--format", "json")
    assert code == 0
    document = json.loads(text)
    if to != "huggingface":
        assert document["to"] == to
        assert document["text"] == out
        assert document["values"]


def test_the_width_that_llama_refuses_is_said_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = said(
        capsys, "export", "--d-model", "1792", "--n-heads", "24", "--n-kv-heads", "8", "--d-head",
        "128", "--n-layers", "32",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["num_attention_heads"] == 24
    assert "transformers 5.24.0 refuses this shape under model_type llama" in err


def test_broken_rules_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(
        capsys, "export", "--d-model", "512", "--n-heads", "32", "--d-head", "16", "--n-layers", "4"
    )
    assert code == 0
    assert "warning: " in err
    assert "d_head 16" in err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([*GEOMETRY, "--to", "vlm"], 2, "unknown format 'vlm'"),
        ([*GEOMETRY, "--format", "html"], 2, "unknown format 'html'"),
        (["--params", "7B", "--n-heads", "32", "--d-model", "4096"], 2, "use one of the two"),
        ([], 2, "no geometry"),
        (["qwen3-8b", "--d-model", "64"], 2, "--d-model describes a geometry"),
        (["no-such-model"], 2, "no file and no catalog model"),
        ([*GEOMETRY, "--to", "llama_cpp", "--kv-dtype", "fp8"], 2, "cannot express a cache of fp8"),
        ([*GEOMETRY, "--to", "torchtitan", "--window", "4k", "--full-every", "6"], 2,
         "sliding windows"),
        (["--d-model", "4096", "--n-heads", "32", "--n-kv-heads", "8", "--to", "vllm",
          "--tensor-parallel", "3", "--target", "3xh100-sxm"], 1, "over 3 ranks"),
    ],
)  # fmt: skip
def test_refusals(
    words: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = said(capsys, "export", *words)
    assert got == code
    assert out == ""
    assert text in err
    assert err.count("error:") == 1


def test_a_refusal_leaves_no_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "flags.sh"
    code, _, _ = said(
        capsys, "export", *GEOMETRY, "--to", "vllm", "--kv-dtype", "q8_0", "--output", str(file)
    )
    assert code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_the_catalog_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "export", "llama-3.1-8b", "--to", "vllm", "--context", "16k")
    assert code == 0
    assert "--max-model-len 16384" in out
