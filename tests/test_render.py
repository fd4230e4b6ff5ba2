"""What the renderers must keep: the same facts in every form, unknowns unknown, valid JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import jsonschema
import numpy as np
import pytest
from sample_report import sample, unknown_latency

from configurator import Request, recommend
from configurator.api import Checked, Compared
from configurator.core.report import CacheReport, Measurement
from configurator.render.comparison import side_by_side, verdict
from configurator.render.content import options_table, recommendation
from configurator.render.document import Document, Section, Table
from configurator.render.html import to_html
from configurator.render.json import plain, to_json
from configurator.render.markdown import to_markdown
from configurator.render.terminal import show, to_text
from configurator.render.words import cache_total, decode_time, fits, heads, penalty
from configurator.schema import report_schema


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_answer_comes_first_on_a_terminal() -> None:
    lines = to_text(recommendation(sample())).splitlines()
    assert lines[0] == "GQA: 32 query heads share 8 KV heads of width 128"


def test_order_is_answer_then_alternatives_then_reasons() -> None:
    text = to_text(recommendation(sample()))
    marks = ["GQA: 32", "The answer", "Alternatives", "Why this one", "This answer again"]
    assert [text.index(m) for m in marks] == sorted(text.index(m) for m in marks)


@pytest.mark.parametrize("draw", [to_text, to_markdown, to_html])
def test_every_form_states_the_same_figures(draw) -> None:
    text = squeezed(draw(recommendation(sample())))
    # Llama 3 8B: 8,030,261,248 parameters; 2 x 8 x 128 x 2 bytes x 32 layers = 128 KiB a token.
    for fact in ("8,030,261,248 parameters", "4 KiB per token and layer in fp16",
                 "128 KiB per token in bf16", "4 GiB (4,294,967,296 bytes)",
                 "32,768", "induction", "8 KV heads keep a quarter of MHA.",
                 "in a tie of expected loss, more sequences fit",
                 "524,288 (16 x)", "meta-llama-3-8b (Meta, 2024)", "mha-configurator probe",
                 ):  # fmt: skip
        assert fact in text, fact
    assert "GB" not in text.replace("GiB", "")


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_terminal_width_loses_a_column_or_overflows(width: int) -> None:
    text = to_text(recommendation(sample()), width)
    body = [line for line in text.splitlines() if "mha-configurator" not in line]
    assert max(map(len, body)) <= width
    assert "0.015625"[:6] in text  # the last table's figures
    assert all(word in squeezed(text) for word in ("Penalty, nats", "By depth", "half the cache"))


def test_pipes_get_no_escape_codes_and_terminals_do() -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    plain_text, coloured = StringIO(), Terminal()
    show(recommendation(sample()), plain_text)
    assert "\x1b" not in plain_text.getvalue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        show(recommendation(sample()), coloured, 100)
        assert "\x1b[" in coloured.getvalue()
        patch.setenv("NO_COLOR", "1")
        quiet = Terminal()
        show(recommendation(sample()), quiet, 100)
    assert "\x1b[3" not in quiet.getvalue()  # no colour; bold is allowed by NO_COLOR


def test_markdown_is_the_same_twice_and_escapes_what_would_be_markup() -> None:
    report = sample(warnings=("a | b <script> *c* [d](e) `f`",))
    first = to_markdown(recommendation(report))
    assert first == to_markdown(recommendation(report))
    assert r"a \| b \<script\> \*c\* \[d\](e) \`f\`" in first
    assert first.endswith("\n")
    assert not first.endswith("\n\n")
    assert "d_model 4,096" in first  # underscores inside words need no escape


def test_markdown_tables_have_as_many_cells_in_every_row() -> None:
    table = Table(header=("a", "b"), rows=(("1 | 2", "x\ny"),), right=(0,))
    text = to_markdown(Document(title="t", answer="a", sections=(Section(table=table),)))
    assert "| a | b |\n| ---: | --- |\n| 1 \\| 2 | x y |" in text


def test_html_is_one_page_without_outside_references_and_escapes_input() -> None:
    report = sample(warnings=("<img src=x onerror=alert(1)>",))
    page = to_html(recommendation(report))
    open_tags: list[str] = []

    class Balanced(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in ("img", "script", "link")
            if tag != "meta":
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Balanced().feed(page)
    assert open_tags == []
    assert "http://" not in page
    assert "https://" not in page


def test_json_validates_and_keeps_the_declared_order() -> None:
    document = json.loads(to_json(sample()))
    jsonschema.validate(document, report_schema())
    assert list(document)[:3] == ["request", "recommendation", "cache"]
    assert document["cache"]["bytes_per_token"] == 131072


def test_json_has_null_for_what_is_unknown_and_no_numpy() -> None:
    report = sample(latency=replace(unknown_latency(), parts_s={"weights": math.nan}))
    document = json.loads(to_json(report))
    assert document["latency"]["decode_s"] is None
    assert document["latency"]["parts_s"] == {"weights": None}
    assert plain({"a": np.int64(3), "b": np.float64("inf"), "c": (np.bool_(True),)}) == {
        "a": 3,
        "b": None,
        "c": [True],
    }
    with pytest.raises(TypeError, match="set has no JSON form"):
        plain({1, 2})


def test_unknown_latency_is_said_to_be_unknown() -> None:
    report = sample(latency=unknown_latency())
    text = squeezed(to_text(recommendation(report)))
    assert "Speed unknown: no rate is known" in text
    assert decode_time(report.latency) == "unknown"


def test_what_does_not_fit_leads_with_it_and_with_what_would() -> None:
    report = sample(fits=False, remedies=("an fp8 cache fits: 2 GiB of cache",))
    lines = to_text(recommendation(report)).splitlines()
    assert lines[0].startswith("Does not fit. The nearest: GQA")
    text = "\n".join(lines)
    assert text.index("What would fit") < text.index("The answer")


def test_a_sum_over_capacity_says_by_how_much() -> None:
    memory = sample().memory
    assert memory.capacity_bytes is not None
    small = replace(memory, capacity_bytes=16 * 2**30)
    assert "does not fit: 10.96 GiB over" in fits(small, False)


def test_without_a_target_weights_and_cache_are_known() -> None:
    """7B in bf16 at 8k: 2 bytes a parameter, 147,456 bytes a token."""
    report = recommend(Request(params="7B")).report
    memory = report.memory
    assert memory.weights_bytes == 2 * report.recommendation.params_total
    assert memory.cache_bytes == report.cache.bytes_total == 8192 * 147_456
    assert memory.capacity_bytes is memory.reserve_bytes is None
    text = fits(memory, None)
    assert text == ("weights 12.99 GiB + cache 1.12 GiB; no target was named, so nothing to fit in")


def test_penalties_never_print_without_their_band() -> None:
    report = sample()
    for option in report.alternatives:
        text = penalty(option.quality, option.recommendation.projection)
        assert "+-" in text
    assert penalty(report.quality, "MHA") == "reference"
    assert penalty(replace(report.quality, extrapolated=True)).endswith("*")


def test_a_wide_interval_is_shown_as_its_ends() -> None:
    latency = replace(sample().latency, decode_s=0.010, low=0.5, high=2.0, error=1.0)
    assert decode_time(latency) == "10 ms (5 ms to 20 ms)"
    assert decode_time(replace(latency, low=0.85, high=1.15, error=0.15)) == "10 ms +- 15 %"


def test_an_encoder_keeps_nothing() -> None:
    none = CacheReport(
        bytes_per_token_per_layer_fp16=0, bytes_per_token=0, bytes_total=0, fits=True,
        max_context=None, max_batch=None, kv_dtype="bf16",
    )  # fmt: skip
    assert cache_total(none, 512, 1) == "none: nothing is kept from one step to the next"


def test_where_nothing_is_cached_the_table_shows_prefill() -> None:
    report = sample()
    rows = tuple(
        replace(o, cache=replace(o.cache, bytes_total=0, max_batch=None))
        for o in report.alternatives
    )
    table = options_table(rows, "Why not")
    assert table.header == ("Option", "Prefill", "Penalty, nats", "Why not")


def test_commands_are_never_broken_over_lines() -> None:
    command = "mha-configurator recommend " + " ".join(f"--flag-{i} value" for i in range(40))
    text = to_text(recommendation(sample(command=command)), 60)
    assert f"  {command}\n" in text


def test_self_and_cross_caches_are_told_apart() -> None:
    cache = replace(sample().cache, self_attention_bytes=3 * 2**20, cross_attention_bytes=2**20)
    assert "self-attention 3 MiB, cross-attention 1 MiB" in cache_total(cache, 4096, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"projection": "MHA", "n_kv_heads": 32}, "MHA: 32 heads of width 128"),
        ({"projection": "MQA", "n_kv_heads": 1}, "32 query heads share one KV head"),
        (
            {"projection": "MLA", "kv_lora_rank": 512, "qk_nope_head_dim": 128,
             "qk_rope_head_dim": 64, "v_head_dim": 128, "q_lora_rank": 1536},
            "latent of 512 + 64 rotary; per head keys 128 + 64, values 128; query latent 1,536",
        ),
    ],
)  # fmt: skip
def test_every_projection_has_its_sentence(changes: dict[str, object], words: str) -> None:
    assert words in heads(replace(sample().recommendation, **changes))


def test_broken_rules_show_words_source_and_evidence() -> None:
    rule = replace(
        sample().rules[0], id="shape/x", verdict="broken", severity="warning",
        message="48 heads over 5 ranks; use 6", source="a paper", evidence="strong",
    )  # fmt: skip
    text = squeezed(to_text(recommendation(sample(rules=(rule,)))))
    assert "warning, shape/x: 48 heads over 5 ranks; use 6 [strong evidence: a paper]" in text


def test_measured_rows_stand_beside_their_prediction() -> None:
    row = Measurement(
        case="GQA 32/8 x 128", formulation="folded", path="sdpa", cache_bytes_predicted=1024,
        cache_bytes_measured=1024, predicted_s=0.001, measured_s=None, spread_s=None,
        bytes_per_s=None, share_of_bandwidth=None, status="out of memory",
    )  # fmt: skip
    text = squeezed(to_text(recommendation(sample(measurements=(row,)))))
    assert "GQA 32/8 x 128 decode 1: folded 1,024 exact 1 ms unknown - out of memory" in text


def test_of_a_cases_formulations_the_fastest_that_counts_is_shown() -> None:
    common = {
        "case": "GQA 32/8 x 128", "path": "", "cache_bytes_predicted": 8, "spread_s": None,
        "cache_bytes_measured": 8, "predicted_s": 1.0, "bytes_per_s": None,
        "share_of_bandwidth": None,
    }  # fmt: skip
    rows = tuple(
        Measurement(formulation=name, measured_s=seconds, status=status, **common)
        for name, seconds, status in (
            ("sdpa", 3.0, "ok"),
            ("folded", 2.0, "ok"),
            ("products", 1.0, "disturbed"),
        )
    )
    text = squeezed(to_text(recommendation(sample(measurements=rows))))
    assert "decode 3: folded 8 exact 1 s 2 s - ok" in text
    assert "3: products" not in text


def test_a_comparison_lists_every_row() -> None:
    report = sample()
    found = Compared(
        request=report.request, rows=report.alternatives, warnings=("a warning",), target={},
        command="mha-configurator compare", version="0",
    )  # fmt: skip
    text = squeezed(to_text(side_by_side(found)))
    assert text.startswith("2 geometries at d_model 4,096 and 7.9B parameters")
    assert "a warning" in text
    assert all(option.label in text for option in report.alternatives)


@pytest.mark.parametrize(
    ("verdict_word", "severity", "fits_", "answer"),
    [
        ("broken", "error", True, "no: it breaks 1 hard rule"),
        ("broken", "warning", True, "stands, with 1 remark"),
        ("holds", "error", True, "stands: no rule is broken"),
        ("holds", "error", False, "no: it does not fit"),
    ],
)
def test_a_check_begins_with_the_verdict(
    verdict_word: str, severity: str, fits_: bool, answer: str
) -> None:
    report = sample()
    option = report.alternatives[0]
    judged = Checked(
        request=report.request, option=replace(option, cache=replace(option.cache, fits=fits_)),
        rules=(replace(report.rules[0], verdict=verdict_word, severity=severity),), warnings=(),
        target=report.target, command="mha-configurator check", version="0",
    )  # fmt: skip
    document = verdict(judged)
    assert document.answer.endswith(answer)
    assert document.good is answer.startswith("stands")
