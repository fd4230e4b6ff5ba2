"""Every rule does what its own examples say, for one case and for columns alike."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurator import Request, recommend, rulebook
from configurator.core.case import Case, Device, FeedForward, Workload
from configurator.core.dtypes import cache_type
from configurator.core.examples import example_device
from configurator.core.rule import Evidence, Rule, Severity, Status
from configurator.core.shapes import decoder, encoder, encoder_decoder, geometry

ROOT = Path(__file__).parents[1]
RULES = rulebook.rules()
IDS = [r.id for r in RULES]
CONCERNS = {"shape", "kernels", "memory", "parallel", "quality", "serving", "training"}
each_rule = pytest.mark.parametrize("rule", RULES, ids=IDS)


def test_there_are_rules_of_every_concern_and_ids_are_unique():
    assert len(RULES) >= 45
    assert len(set(IDS)) == len(IDS)
    assert {id_.partition("/")[0] for id_ in IDS} == CONCERNS
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", id_) for id_ in IDS)


@each_rule
def test_page_has_its_headings_and_a_source(rule: Rule):
    assert rule.page.startswith(rule.title + ".")
    assert len(rule.title) <= 100
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == list(rulebook.HEADINGS)
    opened = r"arXiv \d{4}\.\d{5}|\.(md|py|cu|cuh|cpp|h|m|mm)\b|at [0-9a-f]{7,8}\b|Playbook"
    counted = r"[Oo]wn (count|reading|fit|residuals|percentiles)|found by string\s+search"
    assert re.search(f"{opened}|{counted}", rule.source), "a paper, a file, or a count of ours"


@each_rule
def test_evidence_and_severity_are_declared(rule: Rule):
    assert isinstance(rule.severity, Severity)
    assert isinstance(rule.evidence, Evidence)
    if rule.severity is Severity.ERROR and rule.id != "shape/heads-fill-the-width":
        assert rule.evidence in (Evidence.STRONG, Evidence.MODERATE), "a no needs good evidence"


@each_rule
def test_file_is_short(rule: Rule):
    path = ROOT / "rules" / f"{rule.id.replace('-', '_')}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 90


@each_rule
def test_passing_examples_pass(rule: Rule):
    assert rule.passes()
    for case in rule.passes():
        assert bool(rule.applies(case))
        assert bool(rule.holds(case))


@each_rule
def test_failing_examples_fail_with_the_numbers_and_a_remedy(rule: Rule):
    assert rule.fails()
    for case in rule.fails():
        assert bool(rule.applies(case))
        assert not bool(rule.holds(case))
        words = rule.says(case)
        _check_words(words)
        assert _numbers(case) & set(re.findall(r"\d+(?:\.\d+)?", words.replace(",", "")))
        assert re.search(r"\b(use|take|would|save|cut|spend|offer|pad|choose|pass|make)", words)


def _check_words(words: str) -> None:
    assert "\n" not in words
    assert not words.endswith(".")
    assert re.search(r"\d", words), "a broken rule names the numbers"
    assert len(words) < 450


def _numbers(case: Case) -> set[str]:
    """Whole numbers of the case: geometry, shape, workload, the device's counts."""
    a, shape, work, device = case.attention, case.shape, case.workload, case.device
    fields = ("d_model", "n_heads", "n_kv_heads", "d_head", "kv_lora_rank", "qk_rope_head_dim",
              "qk_nope_head_dim", "latent_width", "v_width")  # fmt: skip
    found = {getattr(a, name) for name in fields if hasattr(a, name)}
    if hasattr(a, "n_kv_heads"):
        found.add(a.n_heads // max(a.n_kv_heads, 1))
    found |= {shape.n_layers, shape.vocab_size, work.context, work.batch, work.tensor_parallel}
    found |= {work.page_size, a.n_heads // max(work.tensor_parallel, 1)}
    found |= {g.scope.size for g in shape.groups}
    found |= {shape.feed_forward.d_ff} if shape.feed_forward else set()
    found |= {device.count, device.n_units} if device else set()
    return {str(number) for number in found if number}


GPU = {"fp8": 1979e12, "bf16": 989e12}
DEVICES = (
    None,
    example_device(count=8),
    example_device(architecture="sm_75", flops_per_s={"fp16": 65e12}),
    example_device(architecture="sm_89", kind="consumer-gpu", memory_bytes=24 << 30),
    example_device(architecture="sm_90", count=8, flops_per_s=GPU),
    example_device(architecture="sm_100", count=16, nodes=2, flops_per_s=GPU),
    example_device(vendor="AMD", architecture="cdna3"),
    example_device(vendor="Apple", kind="laptop", architecture="apple-gpu"),
    example_device(vendor="AMD", kind="cpu-server", architecture="x86-cpu", n_units=0),
    example_device(vendor="AWS", kind="other", architecture="neuron"),
    example_device(vendor="Google", kind="tpu", architecture="tpu-v5e"),
    example_device(vendor="Qualcomm", kind="phone", architecture="adreno", flops_per_s={}),
)
ROWS = 6


def _column(low: int, high: int, also: tuple[int, ...] = ()) -> st.SearchStrategy[list[int]]:
    one = st.integers(low, high) | st.sampled_from(also) if also else st.integers(low, high)
    return st.lists(one, min_size=ROWS, max_size=ROWS)


@st.composite
def grids(draw: st.DrawFn) -> dict[str, object]:
    """Columns of random geometries, sensible or not, with what all rows share."""
    return {
        "d_model": draw(_column(64, 20000, (768, 2048, 4096, 8192))),
        "n_heads": draw(_column(1, 256, (16, 32, 64, 128))),
        "n_kv_heads": draw(_column(1, 64, (1, 2, 4, 8))),
        "d_head": draw(_column(1, 600, (32, 64, 80, 96, 128, 192, 256, 512))),
        "kv_lora_rank": draw(_column(1, 1024, (256, 512))),
        "qk_rope_head_dim": draw(_column(1, 128, (32, 64))),
        "n_layers": draw(_column(1, 128)),
        "d_ff": draw(_column(1, 40000, (11008, 14336))),
        "vocab_size": draw(_column(100, 300000, (50304, 128256))),
        "context": draw(_column(1, 1 << 20, (8192, 131072))),
        "batch": draw(_column(1, 512)),
        "tensor_parallel": draw(_column(1, 16, (1, 2, 4, 8))),
        "latent": draw(st.booleans()),
        "arch": draw(st.sampled_from(("decoder", "encoder", "encoder-decoder", "windowed"))),
        "experts": draw(st.sampled_from((0, 0, 64))),
        "kv": draw(st.sampled_from(("bf16", "fp8", "q8_0", "k=q8_0,v=q4_0"))),
        "page_size": draw(st.sampled_from((1, 16, 24, 64))),
        "allow_decoupled": draw(st.booleans()),
        "device": draw(st.sampled_from(DEVICES)),
    }


def build(drawn: dict[str, object], row: int | None) -> Case:
    """The case of one row, or of all rows as columns."""

    def take(name: str) -> object:
        values = drawn[name]
        return np.array(values, dtype=np.int64) if row is None else values[row]  # type: ignore[index]

    names = ("d_model", "n_heads")
    names += ("kv_lora_rank", "qk_rope_head_dim") if drawn["latent"] else ("n_kv_heads", "d_head")
    attention = geometry(**{name: take(name) for name in names})
    experts = drawn["experts"]
    ff = FeedForward(
        d_model=take("d_model"),
        d_ff=take("d_ff"),
        n_experts=experts,
        experts_per_token=8 if experts else 0,
    )
    common = {"n_layers": take("n_layers"), "feed_forward": ff, "vocab_size": take("vocab_size")}
    if drawn["arch"] == "encoder":
        shape = encoder(attention, **common)
    elif drawn["arch"] == "encoder-decoder":
        shape = encoder_decoder(attention, source_len=4096, **common)
    else:
        window = 1000 if drawn["arch"] == "windowed" else 0
        shape = decoder(attention, window=window, full_every=6 if window else 1, **common)
    work = Workload(
        context=take("context"),
        batch=take("batch"),
        tensor_parallel=take("tensor_parallel"),
        kv=cache_type(str(drawn["kv"])),
        page_size=drawn["page_size"],
        allow_decoupled=drawn["allow_decoupled"],
    )
    device = drawn["device"]
    assert device is None or isinstance(device, Device)
    return Case(shape=shape, workload=work, device=device)


@settings(deadline=None, max_examples=30)
@given(grids())
def test_columns_equal_numbers(drawn: dict[str, object]):
    """One formula: a column of cases is judged as each of them alone."""
    columns = build(drawn, None)
    for rule in RULES:
        applies = np.broadcast_to(rule.applies(columns), (ROWS,))
        holds = np.broadcast_to(rule.holds(columns) if applies.any() else True, (ROWS,))
        for i in range(ROWS):
            one = build(drawn, i)
            assert bool(rule.applies(one)) == bool(applies[i]), rule.id
            if applies[i]:
                assert bool(rule.holds(one)) == bool(holds[i]), rule.id


@settings(deadline=None, max_examples=30)
@given(grids())
def test_any_case_is_judged_in_words(drawn: dict[str, object]):
    """No geometry, however odd, makes a rule fail: a broken one still speaks."""
    for i in range(ROWS):
        verdicts = rulebook.judge(build(drawn, i))
        assert [v.id for v in verdicts] == IDS
        for verdict in verdicts:
            assert verdict.message
            if verdict.status is Status.BROKEN:
                _check_words(verdict.message)


@settings(deadline=None, max_examples=20)
@given(grids())
def test_the_mask_is_what_the_verdicts_say(drawn: dict[str, object]):
    columns = build(drawn, None)
    mask = rulebook.admissible(columns)
    assert isinstance(mask, np.ndarray)
    assert mask.shape == (ROWS,)
    for i in range(ROWS):
        one = build(drawn, i)
        masking = [r for r in RULES if rulebook.masks(r)]
        expected = all(not bool(r.applies(one)) or bool(r.holds(one)) for r in masking)
        assert bool(mask[i]) == expected
        assert rulebook.admissible(one) is expected


def test_heads_under_32_never_pass_whatever_is_asked():
    """The guardrail that no option silences."""
    for width in range(1, 32):
        for drawn in ({"allow_decoupled": True}, {"benchmarking": True}):
            work = Workload(**drawn)
            attention = geometry(d_model=64 * width, n_heads=64, d_head=width)
            ff = FeedForward(d_model=64 * width, d_ff=4096)
            shape = decoder(attention, n_layers=8, feed_forward=ff, vocab_size=50304)
            assert rulebook.admissible(Case(shape=shape, workload=work)) is False


def test_mla_below_a_billion_is_masked_unless_benchmarking():
    small = rulebook.rule("mla-below-a-billion").fails()[0]
    assert rulebook.admissible(small) is False
    asked = replace(small, workload=replace(small.workload, benchmarking=True))
    assert rulebook.admissible(asked) is True


def test_mha_at_long_context_is_answered_with_its_cost():
    """Llama-2-7B's shape at 131,072 tokens: 512 KiB a token, 64 GiB, 16 GiB with 8 KV heads."""
    case = rulebook.rule("mha-beyond-32k").fails()[0]
    verdict = next(v for v in rulebook.judge(case) if v.id == "memory/mha-beyond-32k")
    assert verdict.status is Status.BROKEN
    assert verdict.severity is Severity.WARNING
    assert rulebook.admissible(case) is True
    assert "512 KiB" in verdict.message
    assert "64 GiB" in verdict.message
    assert "16 GiB, 4.0 times less" in verdict.message
    assert "MLA" in verdict.message


def test_importing_a_rule_has_no_side_effect():
    """No output, no torch, no files, no changed settings: only the rule."""
    code = (
        "import sys, os, warnings, logging, random, pathlib, pkgutil, importlib, numpy as np\n"
        "import configurator.rulebook, configurator.core.latency, configurator.core.examples\n"
        "before = (os.getcwd(), dict(os.environ), list(warnings.filters), random.getstate(),"
        " logging.root.handlers[:], list(sys.path), np.geterr())\n"
        "seen = set(sys.modules)\n"
        "n = len(configurator.rulebook.rules())\n"
        "after = (os.getcwd(), dict(os.environ), list(warnings.filters), random.getstate(),"
        " logging.root.handlers[:], list(sys.path), np.geterr())\n"
        "assert before == after\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - seen}\n"
        "assert new <= {'rules', 'configurator', 'math'}, new\n"
        "print(n)\n"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert run.stdout.strip() == str(len(RULES))


def test_one_is_not_many():
    """144 GiB a sequence of 1M tokens: a 192 GB device holds one of 7B beside its weights."""
    report = recommend(Request(params="7B", context="1M", target="mi300x"))
    (said,) = [r.message for r in report.rules if r.id == "memory/room-for-eight-sequences"]
    assert said.startswith("Instinct MI300X 192GB holds 1 sequence of 1,048,576 tokens")
