"""A geometry given by hand, judged; and all projections side by side at one width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from configurator.core.units import format_count
from configurator.render.content import asked, cost_facts, legend, options_table, rule_sections
from configurator.render.document import Document, Section
from configurator.render.words import heads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from configurator.core.report import Option, RuleReport

    class Judged(Protocol):
        """What ``api.check`` returns, as far as it is drawn (the api lies above this layer)."""

        @property
        def request(self) -> dict[str, Any]: ...
        @property
        def option(self) -> Option: ...
        @property
        def rules(self) -> tuple[RuleReport, ...]: ...
        @property
        def warnings(self) -> tuple[str, ...]: ...
        @property
        def target(self) -> dict[str, Any]: ...
        @property
        def command(self) -> str: ...
        @property
        def version(self) -> str: ...

    class Rows(Protocol):
        """What ``api.compare`` returns, as far as it is drawn."""

        @property
        def request(self) -> dict[str, Any]: ...
        @property
        def rows(self) -> Sequence[Option]: ...
        @property
        def warnings(self) -> tuple[str, ...]: ...
        @property
        def target(self) -> dict[str, Any]: ...
        @property
        def command(self) -> str: ...
        @property
        def version(self) -> str: ...


__all__ = ["side_by_side", "verdict"]


def verdict(judged: Judged) -> Document:
    """A check as a document: whether the geometry stands, what it breaks, what it costs."""
    broken = [r for r in judged.rules if r.verdict == "broken"]
    errors = [r for r in broken if r.severity == "error"]
    option, fits = judged.option, judged.option.cache.fits
    if errors:
        said = f"no: it breaks {len(errors)} hard rule{'s' * (len(errors) > 1)}"
    elif fits is False:
        said = "no: it does not fit"
    elif broken:
        said = f"stands, with {len(broken)} remark{'s' * (len(broken) > 1)}"
    else:
        said = "stands: no rule is broken"
    return Document(
        title="Check of a geometry",
        answer=f"{heads(option.recommendation)}: {said}",
        asked=asked(judged.request, judged.target),
        good=not errors and fits is not False,
        sections=(
            Section(title="Warnings", points=tuple(judged.warnings), tone="warning"),
            *rule_sections(judged.rules),
            Section(title="What it costs", facts=cost_facts(option, judged.request)),
            Section(title="This answer again", code=judged.command),
            Section(lead=f"mha-configurator {judged.version}"),
        ),
    )


def side_by_side(found: Rows) -> Document:
    """A comparison as a document, its rows in the order they were given."""
    rows = found.rows
    first = rows[0].recommendation
    return Document(
        title=f"Projections at d_model {first.d_model:,}",
        answer=f"{len(rows)} geometr{'y' if len(rows) == 1 else 'ies'} at d_model "
        f"{first.d_model:,} and {format_count(first.params_total)} parameters",
        asked=asked(found.request, found.target),
        sections=(
            Section(title="Warnings", points=tuple(found.warnings), tone="warning"),
            Section(table=options_table(rows, "Remarks"), note=legend(rows)),
            Section(title="This answer again", code=found.command),
            Section(lead=f"mha-configurator {found.version}"),
        ),
    )
