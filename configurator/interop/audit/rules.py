"""What the rulebook says of an audited model, at the context and on the target asked."""

from __future__ import annotations

from configurator.core.case import Case
from configurator.core.report import RuleReport
from configurator.core.rule import Severity, Status
from configurator.rulebook import judge

__all__ = ["rule_reports"]

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.ADVICE: 2}


def rule_reports(case: Case) -> tuple[RuleReport, ...]:
    """Rules that apply, broken ones first, errors before warnings before advice.

    A model without attention has nothing for the rules to judge.
    """
    if case.shape.main.attention is None:
        return ()
    verdicts = [v for v in judge(case) if v.status is not Status.DOES_NOT_APPLY]
    verdicts.sort(key=lambda v: (v.status is not Status.BROKEN, _ORDER[v.severity], v.id))
    return tuple(
        RuleReport(
            id=v.id,
            severity=v.severity.value,
            verdict=v.status.value,
            message=v.message,
            source=v.source,
            evidence=v.evidence.value,
        )
        for v in verdicts
    )
