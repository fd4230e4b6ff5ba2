"""Advice on converting a model that exists: what it saves, what others lost, and when not to."""

from __future__ import annotations

import json

import pytest

from configurator import UsageError, audit
from configurator.catalog.evidence import evidence
from configurator.catalog.targets import device
from configurator.cli import main
from configurator.convert import convert
from configurator.render.conversion import document
from configurator.render.markdown import to_markdown

LLAMA_2_7B = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,
    "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008,
    "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "float16",
}  # fmt: skip


def by_name(found):
    return {c.name: c for c in found.changes}


def test_changes_and_what_they_save():
    """Llama 2 7B keeps 512 KiB a token; 8 of 32 KV heads a quarter, MLA 576 of 8,192 values."""
    found = convert(LLAMA_2_7B)
    assert found.now.cache.bytes_per_token == 512 * 1024
    changes = by_name(found)
    assert list(changes) == ["GQA-8", "GQA-4", "GQA-2", "MQA", "MLA"]
    assert changes["GQA-8"].cache_share == 0.25
    assert changes["MQA"].cache_share == 1 / 32
    assert changes["MLA"].cache_share == pytest.approx(576 / 8192)
    assert changes["GQA-8"].option.cache.bytes_per_token == 128 * 1024
    assert found.now.recommendation.params_total == 6_738_415_616


def test_what_training_a_conversion_takes():
    """5 % of the original tokens (Ainslie et al. 2023), 0.3 to 0.6 % for a latent (MHA2MLA)."""
    found = convert(LLAMA_2_7B)
    params = found.now.recommendation.params_total
    eight, latent = by_name(found)["GQA-8"], by_name(found)["MLA"]
    assert eight.trained_share == (0.05, 0.05)
    assert eight.trained_tokens[0] == pytest.approx(0.05 * 20 * params)
    assert eight.trained_flops[0] == pytest.approx(6 * params * eight.trained_tokens[0])
    assert latent.trained_share == (0.003, 0.006)


def test_published_losses_are_the_catalogs_and_fit_the_change():
    known = {r.id: r for r in evidence()}
    changes = by_name(convert(LLAMA_2_7B))
    for change in changes.values():
        assert change.published
        for p in change.published:
            r = known[p.id]
            assert r.study == p.study
            if r.value is not None:
                assert f"{r.value:g}" in p.says
    ids = {name: [p.id for p in c.published] for name, c in changes.items()}
    # Aligned heads before pooling: 81.8 of the teacher's 85.5 at 8:1 (arXiv 2412.20677).
    assert "jin2024align-002" in ids["GQA-4"]
    assert "ainslie2023-004" in ids["GQA-8"]
    assert "ainslie2023-001" in ids["MQA"]
    # A 93 % cut of a 7B: the nearest published one cuts 87.5 % (58.96 against 60.22).
    assert ids["MLA"][0] == "ji2025-012"


@pytest.mark.parametrize(
    ("source", "target", "question", "verdict"),
    [
        # 32 sequences of 4k: 64 GiB in 16 bits beside 12.6 GiB of weights, half in fp8.
        (LLAMA_2_7B, "h100-sxm", {"batch": 32}, "smaller cache type first"),
        (LLAMA_2_7B, "h100-sxm", {"batch": 64}, "worth it"),
        ("gpt2", "h100-sxm", {}, "not worth it"),
        ("llama-2-70b", "4xh100-sxm", {}, "not worth it"),
        ("llama-3.1-8b", "h100-sxm", {"context": 131_072}, "not worth it"),
        ("llama-3.1-8b", "rtx-4090", {"context": 131_072}, "worth it"),
        ("qwen1.5-14b", "rtx-4090", {"context": 32_768}, "not enough"),
        ("deepseek-v3", "8xh200-sxm", {}, "nothing to convert"),
        ("bert-base", None, {}, "nothing to convert"),
        ("gemma-2b", "rtx-4090", {}, "nothing to convert"),
        (LLAMA_2_7B, None, {}, "depends"),
    ],
)
def test_verdicts(source, target, question, verdict):
    found = convert(source, device=device(target) if target else None, **question)
    assert found.verdict == verdict
    assert found.reason
    if verdict == "worth it":
        chosen = by_name(found)[found.chosen]
        assert chosen.option.cache.fits
        assert found.steps


def test_the_mildest_change_that_fits_is_chosen():
    found = convert(LLAMA_2_7B, device=device("h100-sxm"), batch=64)
    assert found.chosen == "GQA-8"
    assert not found.now.cache.fits
    assert not found.smaller_cache.cache.fits
    assert "Align the 4 heads" in found.steps[0]
    assert "num_key_value_heads to 8" in found.steps[1]
    assert "5 %" in found.steps[2]


def test_conversions_from_grouped_heads_carry_a_caution():
    found = convert("llama-3.1-8b", device=device("rtx-4090"), context=131_072)
    assert any("start from MHA" in w for w in found.warnings)


def test_small_models_carry_a_caution():
    found = convert({**LLAMA_2_7B, "hidden_size": 2048, "intermediate_size": 5504})
    assert any("1.7B" in w for w in found.warnings)


def test_only_layers_that_cache_are_converted():
    """T5: decoder self- and cross-attention keep a cache, the encoder does not."""
    found = convert("t5-3b", context=512, source_len=512)
    before = found.now.recommendation.params_total
    after = by_name(found)["GQA-8"].option.recommendation.params_total
    # 24 decoder layers with two attentions each lose 24 of 32 key and value heads of 128.
    assert before - after == 24 * 2 * 2 * 1024 * 24 * 128


def test_document_says_verdict_reason_steps_and_losses():
    found = convert(LLAMA_2_7B, device=device("h100-sxm"), batch=64, command="the command")
    text = to_markdown(document(found))
    assert "**MHA 32/32 x 128: worth it: GQA-8**" in text
    for section in ("## Why", "## Conversions, side by side", "## How, to GQA-8",
                    "## What conversions lost"):  # fmt: skip
        assert section in text
    assert "jin2024align-002" in text
    assert "2305.13245" in text


def test_command_line(capsys, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_2_7B))
    arguments = ["recommend", "--from", str(file), "--target", "h100-sxm"]
    assert main([*arguments, "--batch", "64", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["chosen"]) == ("worth it", "GQA-8")
    assert found["command"].startswith("mha-configurator recommend --from")
    assert main(["recommend", "--from", "qwen1.5-14b", "--target", "rtx-4090"]) == 1
    capsys.readouterr()
    assert main([*arguments, "--params", "7B"]) == 2
    assert "--params does not go with --from" in capsys.readouterr().err
    assert main(["recommend", "--from", str(tmp_path / "absent.json")]) == 2


def test_a_split_that_the_target_cannot_do_is_refused():
    with pytest.raises(UsageError, match="tensor-parallel 3"):
        convert(LLAMA_2_7B, device=device("4xh100-sxm"), tensor_parallel=3)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("gemma-4-31b", "does not state every part of its layers; give the whole config.json"),
        ({**LLAMA_2_7B, "vocab_size": None}, "does not state vocab_size"),
        ({k: v for k, v in LLAMA_2_7B.items() if k not in ("model_type", "intermediate_size")},
         "does not state intermediate_size"),
        ({"model_type": "mamba2", "hidden_size": 1024}, "there is nothing to convert"),
        ({"model_type": "deepseek_v4", "hidden_size": 4096}, "there is nothing to convert"),
    ],
    ids=("catalog", "vocabulary", "feed-forward", "no attention", "another kind"),
)  # fmt: skip
def test_what_cannot_be_priced_or_converted_is_said(source, says):
    with pytest.raises(UsageError, match=says):
        convert(source)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"batch": 0}, "batch 0 must be"),
        ({"batch": -1}, "batch -1 must be"),
        ({"tensor_parallel": 0}, "tensor-parallel 0 must be"),
        ({"page_size": 0}, "page-size 0 must be"),
        ({"context": 0}, "context '0' must be above zero"),
        ({"weight_dtype": "x"}, "unknown weight-dtype 'x'"),
        ({"tensor_parallel": 8, "device": device("4xh100-sxm")}, "name 8xh100-sxm"),
    ],
    ids=str,
)
def test_a_question_is_checked_as_an_audits_is(question, says):
    with pytest.raises(UsageError, match=says):
        convert(LLAMA_2_7B, **question)


def test_ranks_that_the_heads_do_not_allow_are_an_answer(capsys):
    """32 heads do not split over 3 ranks; unasked, each of 3 devices holds the whole model."""
    words = ["recommend", "--from", "qwen3-8b", "--target", "3xh100-sxm", "--format", "json"]
    assert main([*words, "--tensor-parallel", "3"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert "32 query heads are not a multiple of 3" in found["reason"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["request"]["tensor_parallel"] == 1
    assert any("3 replicas" in text for text in found["warnings"])


@pytest.mark.parametrize("name", ["t5-v1.1-base", "bart-large", "whisper-small", "qwen3-8b"])
@pytest.mark.parametrize("source_len", [None, 100])
def test_the_cache_as_it_is_is_the_audits(name, source_len):
    """Cross-attention included, which the source's length decides."""
    found = convert(name, context=400, source_len=source_len)
    known = audit(name, context=400, source_len=source_len)
    assert found.now.cache.bytes_total == known.kv_bytes_at_context
    cross = known.kv_bytes_at_context_by_kind.get("cross_attention", 0)
    assert found.now.cache.cross_attention_bytes == cross
    assert set(known.warnings) <= set(found.warnings)


def test_a_windowed_model_keeps_its_own_period() -> None:
    # Gemma 3 4B: every sixth of 34 layers keeps the whole context, 5 of them (its config.json).
    assert convert("gemma-3-4b").now.recommendation.full_every == 6
