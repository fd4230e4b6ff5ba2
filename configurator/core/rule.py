"""A rule: what must hold, in what words it speaks, how strongly, and where it was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from configurator.core.case import Case
from configurator.core.units import Truth

__all__ = ["Evidence", "Rule", "Severity", "Status", "Verdict"]


class Severity(StrEnum):
    """What a broken rule means: an error is a "no", a warning costs, advice is a preference."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class Evidence(StrEnum):
    """How well the rule is supported."""

    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"
    CONVENTION = "convention"
    MEASURED_HERE = "measured here"


class Status(StrEnum):
    """A verdict has three values."""

    HOLDS = "holds"
    BROKEN = "broken"
    DOES_NOT_APPLY = "does not apply"


def _always(case: Case) -> Truth:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. What its file says already is derived by the rulebook, never declared twice.

    ``id`` comes from the folder and the file's name, ``page`` is the docstring, ``title`` its
    first sentence and ``source`` the page's section of that name.

    Args:
        severity: error, warning or advice.
        evidence: strength of the evidence.
        holds: true where the rule is kept; broadcasts, so it judges one case or masks a grid.
        says: the words for one broken case: its numbers and the remedy.
        applies: where the rule has something to say; everywhere by default.
        requires: ids of rules that must hold first.
        passes: gives example cases that keep the rule; built when asked for, as answers need none.
        fails: gives example cases that break it.
        masks: the search drops shapes that break this rule (errors always do).
    """

    severity: Severity
    evidence: Evidence
    holds: Callable[[Case], Truth]
    says: Callable[[Case], str]
    applies: Callable[[Case], Truth] = _always
    requires: tuple[str, ...] = ()
    passes: Callable[[], tuple[Case, ...]] = tuple
    fails: Callable[[], tuple[Case, ...]] = tuple
    masks: bool = False
    id: str = ""
    title: str = ""
    page: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one rule says of one case."""

    id: str
    severity: Severity
    status: Status
    message: str
    source: str
    evidence: Evidence
