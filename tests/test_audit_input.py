"""Files that are no configuration: one clear line, exit code 2, bounded time and memory."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from configurator.cli import main
from configurator.core.errors import UsageError
from configurator.interop.audit import audit
from configurator.interop.config_file import MAX_BYTES, MAX_DEPTH, parse_config, read_config

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 96, "vocab_size": 100,
}  # fmt: skip

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t ", "is empty"),
    "prose": (b"hello", "is not JSON"),
    "truncated": (json.dumps(LLAMA).encode()[:40], "is not JSON"),
    "a list": (b"[1, 2]", "holds a list"),
    "a string": (b'"x"', "holds a string"),
    "a number": (b"7", "holds a number"),
    "null": (b"null", "holds null"),
    "true": (b"true", "holds true or false"),
    "an empty object": (b"{}", "states no layers, width or heads"),
    "NaN": (json.dumps(LLAMA | {"hidden_size": math.nan}).encode(), "hidden_size is nan, not a"),
    "Infinity": (json.dumps(LLAMA | {"head_dim": -math.inf}).encode(), "head_dim is -inf, not a"),
    "overflowing": (json.dumps(LLAMA).replace("64", "1e999").encode(), "hidden_size is inf, not a"),
    "twice": (b'{"hidden_size": 1, "hidden_size": 2}', "'hidden_size' is given twice"),
    "deep lists": (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
    "65 levels": (b'{"a":' * 66 + b"1" + b"}" * 66, f"over {MAX_DEPTH} levels deep"),
    "long number": (b'{"hidden_size": ' + b"9" * 100_000 + b"}", "a number too long"),
    "zero bytes": (b"\0" * 4096, "is not JSON"),
    "latin-1": ("é".encode("latin-1"), "is not UTF-8"),
    "binary": (bytes(range(256)), "is not UTF-8"),
    "UTF-16": ("{}".encode("utf-16"), "is not UTF-8"),
    "lone surrogate": (b'{"model_type": "\\ud800"}', "is not a name"),
    "many layers": (json.dumps(LLAMA | {"num_hidden_layers": 10**9}).encode(), "4,096"),
    "long list": (json.dumps(LLAMA | {"layer_types": ["x"] * 10_000}).encode(), "10,000 entries"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_one_line_and_exit_code_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, said = HOSTILE[name]
    file = tmp_path / "config.json"
    file.write_bytes(data)
    assert main(["audit", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    assert said in err


def test_a_limit_without_end_is_no_size() -> None:
    """Published files of Mamba-2 models state ``time_step_limit`` as [0.0, Infinity]."""
    plain = parse_config(json.dumps(LLAMA))
    found = parse_config(json.dumps(LLAMA | {"time_step_limit": [0.0, math.inf], "x": math.nan}))
    assert audit(found).to_dict() == audit(plain).to_dict()


def test_200_megabytes_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "zeros.json"
    with file.open("wb") as handle:
        handle.truncate(200_000_000)  # sparse: it takes no room on the disk
    with pytest.raises(UsageError, match="is larger than 8 MiB"):
        read_config(file)


def test_the_largest_file_that_is_read(tmp_path: Path) -> None:
    text = json.dumps(LLAMA)
    padded = text[:-1] + " " * (MAX_BYTES - len(text)) + "}"
    file = tmp_path / "large.json"
    file.write_text(padded)
    assert file.stat().st_size == MAX_BYTES
    assert read_config(file) == LLAMA
    file.write_text(padded + " ")
    with pytest.raises(UsageError, match="is larger than"):
        read_config(file)


def test_standard_input_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (MAX_BYTES + 1))))
    with pytest.raises(UsageError, match="standard input is larger than"):
        read_config("-")


def test_a_byte_order_mark_is_no_harm() -> None:
    assert parse_config(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode()) == LLAMA


def test_a_folder_is_its_config_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_config(tmp_path) == LLAMA


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        read_config(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match="zero byte"):
        read_config("a\0b")
    with pytest.raises(UsageError, match="cannot read"):
        read_config("x" * 5000)
    with pytest.raises(UsageError, match="cannot read"):
        read_config(_looping_link(tmp_path))


def _looping_link(folder: Path) -> Path:
    link = folder / "loop"
    link.symlink_to(link)
    return link


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    file.chmod(0)
    with pytest.raises(UsageError, match="cannot read"):
        read_config(file)


def test_a_name_that_is_neither_a_file_nor_a_model_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no file and no catalog model 'qwen3-8c'.*qwen3-8b"):
        audit("qwen3-8c")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"kv_dtype": "fp7"}, "unknown kv-dtype 'fp7'"),
        ({"context": "0"}, "context"),
        ({"context": "many"}, "context"),
        ({"batch": 0}, "batch 0"),
        ({"tensor_parallel": 0}, "tensor-parallel 0"),
        ({"page_size": -16}, "page-size -16"),
        ({"kv_budget": "lots"}, "kv-budget"),
        ({"cache_mode": "both"}, "cache-mode 'both'"),
        ({"target": "h1000"}, "h1000"),
    ],
)
def test_questions_that_cannot_be(question: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        audit(LLAMA, **question)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
