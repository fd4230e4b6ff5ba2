"""The rulebook: every file under ``rules/``, found by walking, judging cases and masking grids.

A rule's module holds one ``rule = Rule(...)``; what the file says already (id, title, page,
source) is derived here. Importing a rule has no side effect.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from configurator.core.case import Case
from configurator.core.errors import UsageError, unknown
from configurator.core.grid import pieces, shape_of
from configurator.core.layers import counted_once
from configurator.core.rule import Rule, Severity, Status, Verdict
from configurator.core.units import Truth

__all__ = [
    "HEADINGS",
    "RuleFileError",
    "admissible",
    "dropped",
    "judge",
    "rule",
    "rules",
    "verify_own",
]

HEADINGS = ("What", "Why", "Instead", "Source")
_OWNER = "mha-configurator"
_PIECE = 1 << 15


class RuleFileError(RuntimeError):
    """A rule's file is broken: our mistake, not the user's, so it is loud and names the file."""


def verify_own() -> Path:
    """The folder of our ``rules`` package; raises ``UsageError`` when another one is imported.

    Other distributions are called ``rules`` too: one may come first on the path, or have been
    installed over our files.
    """
    package = import_module("rules")
    place = Path(getattr(package, "__file__", None) or next(iter(package.__path__), "?")).parent
    if getattr(package, "OWNER", None) != _OWNER:
        raise UsageError(
            f"the package 'rules' in {place} is not the one of mha-configurator: another "
            "distribution or folder of that name hides or has overwritten it; reinstall "
            "mha-configurator in an environment of its own (pipx or uv tool) and run it from "
            "another folder"
        )
    return place


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, sorted by id, required ones first. Raises ``RuleFileError`` for a broken file."""
    folder = verify_own()
    found: dict[str, Rule] = {}
    for path in sorted(folder.glob("*/*.py")):
        if path.name.startswith("_"):
            continue
        name = f"rules.{path.parent.name}.{path.stem}"
        try:
            module = import_module(name)
        except Exception as error:
            raise RuleFileError(f"{path}: cannot be imported: {error}") from error
        found_rule = complete(module, path)
        found[found_rule.id] = found_rule
    return _ordered(found)


def complete(module: ModuleType, path: Path) -> Rule:
    """The module's rule with what its place and docstring say. Raises ``RuleFileError``."""
    bare = getattr(module, "rule", None)
    if not isinstance(bare, Rule):
        raise RuleFileError(f"{path}: holds no 'rule = Rule(...)'")
    page = (module.__doc__ or "").strip()
    parts = sections(page)
    missing = [heading for heading in HEADINGS if not parts.get(heading)]
    if missing or not page:
        raise RuleFileError(f"{path}: its docstring has no '## {(missing or ['What'])[0]}' text")
    title = page.split("\n\n", 1)[0].replace("\n", " ")
    return replace(
        bare,
        id=f"{path.parent.name}/{path.stem}".replace("_", "-"),
        title=title.removesuffix("."),
        page=page,
        source=" ".join(parts["Source"].split()),
    )


def sections(page: str) -> dict[str, str]:
    """A page's text by heading."""
    parts = page.split("\n## ")[1:]
    return {head.strip(): body.strip() for head, _, body in (p.partition("\n") for p in parts)}


def _ordered(found: dict[str, Rule]) -> tuple[Rule, ...]:
    for r in found.values():
        for wanted in r.requires:
            if wanted not in found:
                raise RuleFileError(f"rule {r.id} requires {wanted!r}, which does not exist")
    ordered: dict[str, Rule] = {}

    def place(id_: str, path: tuple[str, ...]) -> None:
        if id_ in path:
            raise RuleFileError(f"rules require one another: {' -> '.join((*path, id_))}")
        if id_ not in ordered:
            for wanted in found[id_].requires:
                place(wanted, (*path, id_))
            ordered[id_] = found[id_]

    for id_ in sorted(found):
        place(id_, ())
    return tuple(ordered.values())


def rule(id_: str) -> Rule:
    """The rule called ``id_``, with or without its concern. Raises ``UsageError`` with neighbours.

    >>> rule("shape/kv-heads-divide-heads") is rule("kv-heads-divide-heads")
    True
    """
    known = {r.id: r for r in rules()}
    tails = [r for r in known.values() if r.id.partition("/")[2] == id_]
    if id_ not in known and len(tails) != 1:
        raise unknown("rule", id_, known, "'rules' lists them all")
    return known[id_] if id_ in known else tails[0]


def judge(case: Case) -> list[Verdict]:
    """What every rule says of one case (plain numbers), required rules first.

    A rule does not apply where one that it requires is broken, or was itself held back.
    """
    verdicts: list[Verdict] = []
    held_back: set[str] = set()
    for r in rules():
        blocker = next((wanted for wanted in r.requires if wanted in held_back), None)
        if blocker is not None:
            status, message = Status.DOES_NOT_APPLY, f"{blocker} must hold first"
        elif not bool(r.applies(case)):
            status, message = Status.DOES_NOT_APPLY, "nothing to judge here"
        elif bool(r.holds(case)):
            status, message = Status.HOLDS, r.title
        else:
            status, message = Status.BROKEN, r.says(case)
        if status is Status.BROKEN or blocker is not None:
            held_back.add(r.id)
        verdicts.append(
            Verdict(
                id=r.id,
                severity=r.severity,
                status=status,
                message=message,
                source=r.source,
                evidence=r.evidence,
            )
        )
    return verdicts


def masks(r: Rule) -> bool:
    """Whether the search drops what breaks the rule: every error, and the rules that ask for it."""
    return r.masks or r.severity is Severity.ERROR


def admissible(case: Case, *, without: Collection[str] = ()) -> Truth:
    """Where a grid of candidates breaks no masking rule: one truth for each row.

    ``without`` names rules, or whole concerns (``memory``), to leave out: what remains when, for
    one, nothing fits. A case without columns gives one truth.
    """
    mask = np.ones(shape_of(case), dtype=np.bool_)
    for rows, piece in pieces(case, _PIECE):
        with counted_once():
            for _, kept in _kept(piece, without):
                mask[rows] &= kept
    return mask if mask.shape else bool(mask)


def dropped(case: Case, *, without: Collection[str] = ()) -> dict[str, int]:
    """How many rows of a grid each masking rule drops, rules that drop none left out."""
    counts: dict[str, int] = {}
    for _, piece in pieces(case, _PIECE):
        shape = shape_of(piece)
        for id_, kept in _kept(piece, without):
            broken = math.prod(shape) - int(np.count_nonzero(np.broadcast_to(kept, shape)))
            counts[id_] = counts.get(id_, 0) + broken
    return {id_: count for id_, count in counts.items() if count}


def _kept(case: Case, without: Collection[str]) -> Iterator[tuple[str, Truth]]:
    """Masking rules with where they are not broken. A required rule masks by itself."""
    for r in rules():
        if not masks(r) or r.id in without or r.id.partition("/")[0] in without:
            continue
        applies = r.applies(case)
        if isinstance(applies, np.ndarray):
            yield r.id, np.logical_or(np.logical_not(applies), r.holds(case))
        elif applies:
            yield r.id, r.holds(case)
