"""MHA, GQA (each divisor), MQA and MLA side by side at one model width."""

from __future__ import annotations

from configurator.cli.options import (
    GEOMETRY,
    QUESTION,
    SHAPE,
    TARGET,
    Format,
    Given,
    Output,
    takes,
)

__all__ = ["compare"]


@takes(GEOMETRY, SHAPE, QUESTION, TARGET)
def compare(given: Given, format: Format = None, output: Output = None) -> int:
    """MHA, GQA (each divisor), MQA and MLA side by side at one model width.

    Give --d-model and --n-heads, or a budget with --params to start from what `recommend`
    answers. Exit code 1 means that none of them fits the target.
    """
    from configurator import api
    from configurator.cli.asked import request_of
    from configurator.cli.output import deliver, form
    from configurator.render.comparison import side_by_side

    chosen = form(format, output)
    found = api.compare(request_of(given))
    deliver(found, lambda: side_by_side(found), chosen, output)
    return 1 if found.rows and all(row.cache.fits is False for row in found.rows) else 0
