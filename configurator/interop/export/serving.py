"""What settings for servers share: ranks that the heads allow, and flags as a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from configurator.interop.audit.ranks import rank_rule
from configurator.interop.export.subject import RanksError, Subject

__all__ = ["check_ranks", "command"]


def check_ranks(subject: Subject, who: str) -> int:
    """The ranks of the case; raises :class:`RanksError` where the heads do not allow them."""
    ranks = int(subject.case.workload.tensor_parallel)
    attentions = [x.attention for x in subject.layers if x.attention is not None]
    rule = rank_rule(attentions)
    if not rule.allows(ranks):
        *front, last = map(str, rule.counts(copies=True))
        allowed = f"{', '.join(front)} or {last}" if front else last
        raise RanksError(
            f"{who} cannot split these heads over {ranks} ranks ({rule.verdict(ranks)}); use "
            f"--tensor-parallel {allowed}"
        )
    return ranks


def command(program: str, flags: Mapping[str, Any]) -> str:
    """A command with one flag a line; ``True`` is a flag without a value."""
    lines = [program]
    for name, value in flags.items():
        lines.append(f"  {name}" if value is True else f"  {name} {shlex.quote(str(value))}")
    return " \\\n".join(lines) + "\n"
