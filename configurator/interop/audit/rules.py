"""What the rulebook says of an audited model, at the context and on the target asked."""

from __future__ import annotations

from configurator import assemble
from configurator.core.case import Case
from configurator.core.report import RuleReport

__all__ = ["rule_reports"]

# An audited model is trained already: how to initialize or steady it comes too late.
_TOO_LATE = "training/"


def rule_reports(case: Case) -> tuple[RuleReport, ...]:
    """Rules that apply, broken ones first, errors before warnings before advice.

    A model without attention has nothing for the rules to judge.
    """
    if case.shape.main.attention is None:
        return ()
    return tuple(r for r in assemble.rule_reports(case) if not r.id.startswith(_TOO_LATE))
