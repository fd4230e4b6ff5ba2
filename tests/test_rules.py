"""Every rule does what its own examples say, for one case and for columns alike."""

from __future__ import annotations

import re

import pytest

from configurator import rulebook
from configurator.core.rule import Rule

RULES = rulebook.rules()
IDS = [r.id for r in RULES]
each_rule = pytest.mark.parametrize("rule", RULES, ids=IDS)
CONCERNS = {"shape", "kernels", "memory", "parallel", "quality", "serving", "training"}


def test_ids_are_unique_and_name_their_folder():
    assert len(set(IDS)) == len(IDS)
    assert {id_.partition("/")[0] for id_ in IDS} <= CONCERNS
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", id_) for id_ in IDS)


@each_rule
def test_page(rule: Rule):
    assert rule.page.startswith(rule.title + ".")
    assert len(rule.title) <= 100
    assert re.findall(r"^## (.+)$", rule.page, re.M) == list(rulebook.HEADINGS)
    assert len(rule.source) >= 10


@each_rule
def test_passing_examples_pass(rule: Rule):
    assert rule.passes
    for case in rule.passes:
        assert bool(rule.applies(case))
        assert bool(rule.holds(case))


@each_rule
def test_failing_examples_fail_with_numbers_and_a_remedy(rule: Rule):
    assert rule.fails
    for case in rule.fails:
        assert bool(rule.applies(case))
        assert not bool(rule.holds(case))
        words = rule.says(case)
        assert re.search(r"\d", words), "a broken rule names the numbers"
        assert re.search(r"[;,:] |offer|take|use", words), "and says what to do"
        assert "\n" not in words
        assert not words.endswith(".")
        assert len(words) < 420
