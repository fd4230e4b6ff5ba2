"""The rulebook itself: how rules are found, ordered, refused and asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from configurator import rulebook
from configurator.core.case import Case, FeedForward, Workload
from configurator.core.errors import UsageError
from configurator.core.examples import example, example_device
from configurator.core.rule import Evidence, Rule, Severity, Status
from configurator.core.shapes import decoder, geometry

ROOT = Path(__file__).parents[1]
PAGE = "Title.\n\n## What\n\nw\n\n## Why\n\nw\n\n## Instead\n\ni\n\n## Source\n\na\nb"


def made(id_: str = "", requires: tuple[str, ...] = (), **changes: object) -> Rule:
    fields: dict[str, object] = {
        "severity": Severity.ERROR,
        "evidence": Evidence.WEAK,
        "holds": lambda case: True,
        "says": lambda case: "1",
    }
    return Rule(id=id_, requires=requires, **(fields | changes))  # type: ignore[arg-type]


def module(page: str = PAGE, rule: object = None) -> ModuleType:
    found = ModuleType("rules.shape.some_rule", page)
    found.rule = made() if rule is None else rule  # type: ignore[attr-defined]
    return found


def test_what_the_file_says_is_derived():
    found = rulebook.complete(module(), Path("rules/shape/some_rule.py"))
    assert found.id == "shape/some-rule"
    assert found.title == "Title"
    assert found.page == PAGE
    assert found.source == "a b"


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (module(page="Title.\n\n## What\n\nw"), "'## Why'"),
        (module(page=""), "'## What'"),
        (module(page=PAGE.replace("\na\nb", "")), "'## Source'"),
        (module(rule="no rule"), "no 'rule = Rule"),
    ],
)
def test_a_broken_file_is_named(broken: ModuleType, words: str):
    with pytest.raises(rulebook.RuleFileError, match=words) as error:
        rulebook.complete(broken, Path("rules/shape/some_rule.py"))
    assert "some_rule.py" in str(error.value)


def test_a_rule_that_cannot_be_imported_is_loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "shape").mkdir()
    (tmp_path / "shape" / "no_such_module_here.py").write_text("rule = 1 / 0\n")
    monkeypatch.setattr(rulebook, "verify_own", lambda: tmp_path)
    with pytest.raises(rulebook.RuleFileError, match=r"no_such_module_here\.py"):
        rulebook.rules.__wrapped__()


def test_required_rules_come_first_and_cycles_are_refused():
    a, b = made("a/a", ("b/b",)), made("b/b")
    assert [r.id for r in rulebook._ordered({"a/a": a, "b/b": b})] == ["b/b", "a/a"]
    with pytest.raises(rulebook.RuleFileError, match="a/a -> b/b -> a/a"):
        rulebook._ordered({"a/a": a, "b/b": made("b/b", ("a/a",))})
    with pytest.raises(rulebook.RuleFileError, match="requires 'b/b'"):
        rulebook._ordered({"a/a": a})
    order = [r.id for r in rulebook.rules()]
    for r in rulebook.rules():
        assert all(order.index(wanted) < order.index(r.id) for wanted in r.requires)


def test_a_rule_is_found_with_and_without_its_concern():
    assert rulebook.rule("shape/kv-heads-divide-heads").severity is Severity.ERROR
    assert rulebook.rule("kv-heads-divide-heads").id == "shape/kv-heads-divide-heads"
    with pytest.raises(UsageError, match="nearest: shape/kv-heads-divide-heads"):
        rulebook.rule("shape/kv-heads-divide-head")


def test_verdicts_have_three_values():
    case = example(n_heads=28, n_kv_heads=5, d_model=3584, tensor_parallel=8)
    found = {v.id: v for v in rulebook.judge(case)}
    broken = found["shape/kv-heads-divide-heads"]
    assert broken.status is Status.BROKEN
    assert broken.message == "28 query heads do not divide over 5 KV heads; take 2, 4 or 7"
    assert found["shape/head-width-at-least-32"].status is Status.HOLDS
    assert found["shape/head-width-at-least-32"].message == "A head is at least 32 wide"
    held_back = found["parallel/kv-heads-fit-ranks"]
    assert held_back.status is Status.DOES_NOT_APPLY
    assert held_back.message == "parallel/heads-divide-by-ranks must hold first"
    second = found["parallel/kv-heads-are-not-copied"]
    assert second.status is Status.DOES_NOT_APPLY, "what waits for a rule held back waits too"
    assert found["memory/weights-fit"].status is Status.DOES_NOT_APPLY


def grid(rows: int = 5) -> Case:
    """KV heads 1, 2, 3, ... of 32 query heads."""
    kv = np.arange(1, rows + 1)
    attention = geometry(
        d_model=np.full(rows, 4096), n_heads=np.full(rows, 32), n_kv_heads=kv,
        d_head=np.full(rows, 128),
    )  # fmt: skip
    ff = FeedForward(d_model=4096, d_ff=14336)
    shape = decoder(attention, n_layers=32, feed_forward=ff, vocab_size=128256)
    return Case(shape=shape, workload=Workload(), device=example_device())


def test_a_grid_is_masked_row_by_row():
    assert rulebook.admissible(grid()).tolist() == [True, True, False, True, False]
    assert rulebook.dropped(grid()) == {"shape/kv-heads-divide-heads": 2}
    without = rulebook.admissible(grid(), without=("shape/kv-heads-divide-heads",))
    assert without.tolist() == [True] * 5
    assert rulebook.admissible(grid(), without=("shape",)).tolist() == [True] * 5


def test_a_long_grid_in_pieces_is_the_same_mask(monkeypatch: pytest.MonkeyPatch):
    whole, counts = rulebook.admissible(grid(31)), rulebook.dropped(grid(31))
    monkeypatch.setattr(rulebook, "_PIECE", 7)
    assert rulebook.admissible(grid(31)).tolist() == whole.tolist()
    assert rulebook.dropped(grid(31)) == counts


def test_a_rule_that_only_asks_for_scalars_still_masks_every_row():
    """Where nothing in the rules is a column the mask keeps the grid's length."""
    case = grid(4)
    assert rulebook.admissible(case, without=("shape", "memory", "parallel")).shape == (4,)


def test_another_package_called_rules_is_named(tmp_path: Path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "__init__.py").write_text("")
    code = "from configurator import rulebook\nrulebook.rules()"
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    last = run.stderr.strip().splitlines()[-1]
    assert "configurator.core.errors.UsageError" in last
    assert f"the package 'rules' in {tmp_path / 'rules'} is not the one of mha-configurator" in last
    assert "environment of its own" in last
