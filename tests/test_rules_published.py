"""The rules against the models people published: masks drop none, and counted claims are true."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from configurator import rulebook
from configurator.catalog import published
from configurator.core.case import Case, Workload
from configurator.core.errors import UsageError
from configurator.core.rule import Status
from rules.shape import aspect_ratio_was_published as aspect

# What the masks are known to drop, with the reason. Nothing needs an entry: every published shape
# is admissible once decoupled heads are allowed.
KNOWN: dict[str, str] = {}


@cache
def cases() -> dict[str, Case]:
    """Every published model whose layers the catalog can count, at 8,192 tokens."""
    return dict(_cases())


def _cases() -> Iterator[tuple[str, Case]]:
    for m in published.models():
        try:
            yield m.name, Case(shape=m.shape(), workload=Workload(allow_decoupled=True))
        except UsageError:  # hybrids and shared layers that the catalog does not count
            continue


def decoders(since: int) -> dict[str, Case]:
    years = {m.name: m.year for m in published.models()}
    return {
        name: case
        for name, case in cases().items()
        if case.shape.arch == "decoder" and years[name] >= since
    }


def share(rule_id: str, among: dict[str, Case]) -> float:
    """Share of the models to which a rule applies that keep it."""
    verdicts = [next(v for v in rulebook.judge(case) if v.id == rule_id) for case in among.values()]
    applying = [v.status for v in verdicts if v.status is not Status.DOES_NOT_APPLY]
    assert len(applying) > 20
    return applying.count(Status.HOLDS) / len(applying)


def test_most_published_models_can_be_judged():
    assert len(cases()) >= 250


def test_no_published_shape_is_masked():
    dropped = {name: rulebook.dropped(case) for name, case in cases().items()}
    assert {name for name, why in dropped.items() if why} == set(KNOWN)


def test_only_decoupled_shapes_need_to_be_asked_for():
    """Without the flag the width rule, and no other, drops what departs from it."""
    for name, case in cases().items():
        plain = Case(shape=case.shape)
        a = case.attention
        fills = getattr(a, "kv_lora_rank", 0) or a.n_heads * a.d_head == a.d_model  # type: ignore[attr-defined]
        expected = {} if fills else {"shape/heads-fill-the-width": 1}
        assert rulebook.dropped(plain) == expected, name


def test_llama_3_70b_on_eight_gpus_is_what_the_rules_want():
    """64 query heads and 8 KV heads of 128 on d_model 8,192: near consensus, nothing of shape."""
    case = cases()["llama-3-70b"]
    case = Case(shape=case.shape, workload=Workload(context=131072, tensor_parallel=8))
    broken = {v.id for v in rulebook.judge(case) if v.status is Status.BROKEN}
    assert not {id_ for id_ in broken if id_.startswith(("shape/", "parallel/", "quality/"))}


@pytest.mark.parametrize(
    ("rule_id", "least", "since"),
    [
        ("shape/head-width-is-usual", 0.90, 2022),
        ("shape/vocabulary-is-padded", 0.88, 2022),
        ("training/width-fills-tensor-cores", 1.0, 2022),
        ("shape/aspect-ratio-was-published", 0.90, 2022),
        ("shape/feed-forward-in-the-usual-ratio", 0.90, 2022),
        ("shape/density-tells-the-mixture", 1.0, 2024),
        ("shape/heads-are-a-multiple-of-8", 0.85, 2022),
        ("training/biases-are-left-out", 0.70, 2024),
    ],
)
def test_what_a_page_counts_is_so(rule_id: str, least: float, since: int):
    assert share(rule_id, decoders(since)) >= least


def test_aspect_ranges_leave_out_few_on_either_side():
    for below, low, high in aspect.RANGES:
        ratios = sorted(
            case.shape.d_model / case.shape.n_layers
            for case in decoders(2022).values()
            if _in(case, below)
        )
        assert low <= ratios[len(ratios) // 20]
        assert ratios[-1 - len(ratios) // 20] <= high


def _in(case: Case, below: float) -> bool:
    from configurator.core.cost import params_total

    size = params_total(case.shape)
    limits = [limit for limit, _, _ in aspect.RANGES]
    above = limits[limits.index(below) - 1] if limits.index(below) else 0
    return bool(above <= size < below)


def test_most_gqa_models_keep_groups_of_8_but_a_sixth_do_not():
    """19 of 110 in the page: a group of 8 is no rule of the field, one of 16 nearly is."""
    groups = [
        case.attention.n_heads // case.attention.kv_heads
        for case in decoders(2024).values()
        if case.attention.projection == "GQA"
    ]
    beyond = sum(g > 8 for g in groups) / len(groups)
    assert 0.08 <= beyond <= 0.25
    assert sum(g > 16 for g in groups) / len(groups) < 0.05


def test_no_new_decoder_since_2025_keeps_mha():
    """The page's claim: MHA since then repeats a shape that was published before."""

    def size(case: Case) -> tuple[int, ...]:
        a = case.attention
        return a.d_model, case.shape.n_layers, a.n_heads, a.kv_heads

    later = decoders(2025)
    before = {size(c) for n, c in decoders(2018).items() if n not in later}
    mha = {n: size(c) for n, c in later.items() if c.attention.projection == "MHA"}
    assert {n for n, found in mha.items() if found not in before} == set()
