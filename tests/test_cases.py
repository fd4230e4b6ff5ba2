"""Worked cases: configurations that tools got wrong in public, with answers worked out by hand.

Each file in ``cases/`` holds a configuration and what is asked of it. The figures were checked
by counting weights and cache tensors of the model classes of transformers 5.24.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from configurator.core.errors import UsageError
from configurator.core.units import parse_bytes, parse_params, parse_tokens
from configurator.interop.audit import audit

_FOLDER = Path(__file__).parent / "cases"
_CASES = {path.stem: json.loads(path.read_text()) for path in sorted(_FOLDER.glob("*.json"))}
_ASKED = [(name, i) for name, case in _CASES.items() for i in range(len(case.get("asks", ())))]


def test_every_case_is_here() -> None:
    assert len(_CASES) == 24  # 01 to 23 and 26; 24 and 25 are about timings, tested elsewhere


@pytest.mark.parametrize(("name", "i"), _ASKED)
def test_case(name: str, i: int) -> None:
    case = _CASES[name]
    ask = case["asks"][i]
    answer = audit(case["config"], **ask["question"])
    got = answer.to_dict()
    for key, expected in ask.get("expect", {}).items():
        if isinstance(expected, dict):
            assert {k: got[key].get(k) for k in expected} == expected, key
        else:
            assert got[key] == expected, key
    for text in ask.get("warns", ()):
        assert any(text in warning for warning in got["warnings"])
    if "tp_verdict" in ask:
        ranks = ask["question"]["tensor_parallel"]
        assert got["tp_verdicts"][str(ranks)] == ask["tp_verdict"]
        assert answer.answer_is_no == ask["tp_verdict"].startswith("refused")


def _changed(case: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**case["config"], **changes}


@pytest.mark.parametrize("variant", _CASES["15-invalid-head-counts"]["variants"])
def test_impossible_head_counts_are_refused_in_one_line(variant: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        audit({**_CASES["15-invalid-head-counts"]["base"], **variant["change"]})
    message = str(caught.value)
    assert "\n" not in message
    for number in (*variant["must_name"], *variant["suggest"]):
        assert str(number) in message
    assert next(iter(variant["change"])) in message


def test_a_missing_kv_key_means_the_same_as_null() -> None:
    config = dict(_CASES["03-llama-null-kv-heads"]["config"])
    del config["num_key_value_heads"]
    assert audit(config).kv_bytes_per_token == 524_288


def test_the_kv_key_may_be_spelt_as_falcon_first_spelt_it() -> None:
    config = dict(_CASES["05-falcon-new-decoder"]["config"])
    config["n_head_kv"] = config.pop("num_kv_heads")
    assert audit(config).kv_bytes_per_token == 122_880


def test_without_the_flag_the_same_file_is_multi_head() -> None:
    case = _CASES["06-gpt-bigcode-aliases"]
    answer = audit(_changed(case, multi_query=False), kv_dtype="fp16")
    assert (answer.projection, answer.n_kv_heads) == ("MHA", 48)
    assert answer.kv_bytes_per_token == 983_040


def test_a_rank_count_is_refused_with_the_nested_key() -> None:
    answer = audit(_CASES["10-vlm-nested-hybrid"]["config"], tensor_parallel=3)
    assert answer.answer_is_no
    assert "text_config.num_attention_heads" in answer.tp_verdicts["3"]


@pytest.mark.parametrize(
    ("ranks", "verdict"),
    [
        (3, "refused: 2 KV heads and 3 ranks do not divide either way"),
        (6, "allowed with each KV head copied on 3 ranks"),
        (8, "refused: 12 query heads are not a multiple of 8"),
    ],
)
def test_twelve_heads_two_kv(ranks: int, verdict: str) -> None:
    answer = audit(_CASES["12-window-switched-off"]["config"], tensor_parallel=ranks)
    assert answer.tp_verdicts[str(ranks)] == verdict


def test_without_a_head_width_the_hidden_size_must_divide() -> None:
    config = dict(_CASES["16-hidden-not-multiple-of-heads"]["config"])
    del config["head_dim"]
    with pytest.raises(UsageError, match=r"1792 is not a multiple of num_attention_heads 24"):
        audit(config)


def test_a_list_of_the_wrong_length_is_refused() -> None:
    config = dict(_CASES["21-per-layer-head-lists"]["config"])
    config["num_kv_heads"] = config["num_kv_heads"][:-1]
    with pytest.raises(UsageError, match="15"):
        audit(config)


def test_untied_and_missing_output_heads() -> None:
    case = _CASES["26-tied-embeddings"]
    assert audit(_changed(case, tie_word_embeddings=False)).params_total == 1_498_482_688
    config = dict(case["config"])
    del config["tie_word_embeddings"]  # false by the default of the class
    assert audit(config).params_total == 1_498_482_688


def test_prediction_layers_hold_no_cache() -> None:
    """One extra layer would add 1,152 bytes a token (case 09)."""
    config = _CASES["09-mla-tensor-parallel"]["config"]
    assert config["num_nextn_predict_layers"] == 1
    assert audit(config).kv_bytes_per_token == 61 * 1152


_PARSE = {"params": parse_params, "tokens": parse_tokens, "bytes": parse_bytes}


@pytest.mark.parametrize("item", _CASES["23-units"]["values"], ids=lambda item: item["text"])
def test_sizes_as_people_type_them(item: dict[str, Any]) -> None:
    assert _PARSE[item["what"]](item["text"]) == item["value"]


@pytest.mark.parametrize("text", _CASES["23-units"]["refused"])
@pytest.mark.parametrize("what", _PARSE)
def test_sizes_that_are_refused(text: str, what: str) -> None:
    if (text, what) == ("25.6k", "params"):
        assert parse_params(text) == 25_600  # whole, as powers of ten go
        return
    with pytest.raises(UsageError):
        _PARSE[what](text)
