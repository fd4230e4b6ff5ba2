"""The catalog and the reader are two ways to one count: every model by name, and by its file."""

from __future__ import annotations

import pytest
from published_configs import PUBLISHED

from configurator.catalog.published import PublishedModel, model, models
from configurator.core.errors import UsageError
from configurator.interop.audit import Audit, audit

MODELS = models()


def ids(found: PublishedModel) -> str:
    return found.name


def by_name(name: str) -> Audit:
    """One byte a value, so that bytes are elements."""
    return audit(name, kv_dtype="int8", context=1024)


@pytest.mark.parametrize("found", MODELS, ids=ids)
def test_cache_elements_and_parameters_by_name(found: PublishedModel) -> None:
    if found.kv_elements_per_token is None:
        with pytest.raises(UsageError, match="its attention is no MHA, GQA, MQA or MLA"):
            by_name(found.name)
        return
    got = by_name(found.name)
    assert got.kv_bytes_per_token_past_window == found.kv_elements_per_token
    assert got.kv_bytes_per_token >= found.kv_elements_per_token
    assert got.params_total == (found.counted_params or None)
    blocks = 2 if found.name == "longcat-flash" else 1  # attention blocks of one layer
    assert got.kv_layers <= blocks * found.n_layers


EXACT = [m for m in MODELS if m.params_basis == "exact" and m.counted_params == m.published_params]


@pytest.mark.parametrize("found", EXACT, ids=ids)
def test_published_integers_to_the_last_one(found: PublishedModel) -> None:
    """Rounded figures are held against the same counts in the catalog's own tests."""
    assert by_name(found.name).params_total == found.published_params


# Where the catalog's row and the file count different things, and what the difference is.
DIFFERS = {
    "roberta-base": "the file's class has the language-model head",
    "arctic-480b": "a third norm in the layers with experts",
    "hunyuan-large": "keys and values are absent in layers that borrow them",
    "kimi-k2": "60 x 384 correction biases of the router are buffers",
    "deepseek-v3": "58 x 256 correction biases of the router are buffers",
    "deepseek-v3.2": "the row is V3's; the file adds the sparse-attention indexer",
}
BUFFERS = {"kimi-k2": 60 * 384, "deepseek-v3": 58 * 256}
CUT_SHORT = {"nemotron-super-49b"}  # the file here lists a few of its blocks


def _both() -> list[str]:
    known = {m.name: m for m in MODELS}
    return [n for n in PUBLISHED if n in known and n not in CUT_SHORT]


@pytest.mark.parametrize("name", _both())
def test_the_file_of_a_model_gives_what_its_row_gives(name: str) -> None:
    row = model(name)
    got = audit(PUBLISHED[name][0], kv_dtype="int8", context=1024)
    if name != "deepseek-v3.2":
        assert got.kv_bytes_per_token_past_window == row.kv_elements_per_token
    if name in BUFFERS:
        assert got.params_total == row.counted_params - BUFFERS[name]
    elif name in DIFFERS:
        assert got.params_total == pytest.approx(row.counted_params, rel=0.01)
        assert got.params_total != row.counted_params
    elif row.countable:
        assert got.params_total == row.counted_params


def test_most_models_of_the_catalog_are_read_from_files_too() -> None:
    names = _both()
    assert len(names) >= 70
    assert set(DIFFERS) <= set(names)


def test_an_unknown_count_is_said_and_no_rule_rests_on_it() -> None:
    got = audit("gemma-4-31b", context="32k")
    assert got.params_total is None
    assert any("parameters are unknown" in w for w in got.warnings)
    assert not any("weights" in rule.message for rule in got.rules)
    # Full layers have 4 KV heads of 512, windowed ones 16 of 256: each has its own row.
    assert {(g.n_kv_heads, g.d_head) for g in got.layer_groups} == {(4, 512), (16, 256)}


def test_two_caches_in_a_layer_are_one_layer() -> None:
    got = audit("deepseek-v4-flash", context="32k")
    assert (got.kv_layers, got.total_layers) == (43, 43)
    assert got.kv_bytes_per_token_past_window == 2 * (21 * 640 // 4 + 20 * 512 // 128)
