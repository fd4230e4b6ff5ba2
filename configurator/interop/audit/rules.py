"""What the rulebook says of an audited model, at the context and on the target asked."""

from __future__ import annotations

from dataclasses import replace

from configurator import assemble
from configurator.core.case import Case
from configurator.core.report import RuleReport

__all__ = ["rule_reports"]

# An audited model is trained already: how to initialize or steady it comes too late.
_TOO_LATE = "training/"
_FEW, _MANY = 10**8, 10**14


def rule_reports(case: Case, *, params_known: bool = True) -> tuple[RuleReport, ...]:
    """Rules that apply, broken ones first, errors before warnings before advice.

    Where the parameters are not known, only rules that say the same of a small model and of a
    very large one. A model without attention has nothing for the rules to judge.
    """
    if case.shape.main.attention is None:
        return ()
    if params_known:
        return _judged(case)
    small, large = (_judged(_filled(case, params)) for params in (_FEW, _MANY))
    return tuple(report for report in small if report in large)


def _judged(case: Case) -> tuple[RuleReport, ...]:
    return tuple(r for r in assemble.rule_reports(case) if not r.id.startswith(_TOO_LATE))


def _filled(case: Case, params: int) -> Case:
    return replace(case, shape=replace(case.shape, other_params=params))
