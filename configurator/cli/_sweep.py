"""What `recommend --sweep` prints and writes: the map of regimes, as text and as a picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from configurator.core.errors import MissingExtra

__all__ = ["swept"]


def swept(
    given: dict[str, Any],
    texts: Sequence[str],
    how: Mapping[str, str],
    format: str | None,
    output: str | None,
) -> int:
    """Run the sweep, print or write it, and return 0: every point has its own status.

    ``--output map.svg`` writes the picture alone; a Markdown or HTML file gets the picture
    beside it where matplotlib is there.
    """
    from configurator.cli.output import check_writable, deliver, form, write_whole
    from configurator.core.units import parse_seconds
    from configurator.render.regimes import document, regimes_svg
    from configurator.schema import Request
    from configurator.sweep import parse_axis, sweep

    axes = [parse_axis(text) for text in texts]
    first = {a.name: a.values[0] for a in axes}
    picture = Path(output) if output and output.lower().endswith(".svg") else None
    chosen = form(format, output)
    if output is not None:
        check_writable("--output", Path(output))
    found = sweep(
        Request(**{**first, **given} if "params" in given else {**given, **first}),
        texts,
        on=how.get("on"),
        shard=how.get("shard"),
        resume=how.get("resume"),
        budget_s=parse_seconds(how["budget"]) if "budget" in how else None,
    )
    if picture is not None and format is None:
        write_whole(picture, regimes_svg(found))
        print(f"wrote {picture}", file=sys.stderr)
        return 0
    deliver(found, lambda: document(found), chosen, output)
    if output and chosen in ("markdown", "html"):
        beside = Path(output).with_suffix(".svg")
        try:
            write_whole(beside, regimes_svg(found))
        except MissingExtra as error:
            print(f"no picture: {error}", file=sys.stderr)
        else:
            print(f"wrote {beside}", file=sys.stderr)
    return 0
