"""Join rows that were produced in shards, and say what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from configurator.cli.options import Output

__all__ = ["merge"]


def merge(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Rows files (JSON lines) of one run.")
    ],
    output: Output = None,
) -> None:
    """Join rows that were produced in shards, and say what is missing.

    Each item is kept once, in the run's order; a finished row goes before a failed one. Rows of
    different runs or versions are refused. The result is itself a rows file: the same command
    with --resume on it does what is missing and prints the answer. Ends with 1 where rows are
    missing or failed.
    """
    from configurator.cli.output import form, write_whole
    from configurator.rows import join, lines

    form(None, output)  # refuses an output that cannot be a file before anything is read
    joined = join(files)
    if output is None:
        sys.stdout.write(lines(joined.rows))
    else:
        write_whole(Path(output), lines(joined.rows))
    for line in joined.says():
        print(line, file=sys.stderr)
    if not joined.complete:
        raise typer.Exit(1)
