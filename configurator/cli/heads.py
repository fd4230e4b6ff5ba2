"""Show where each head of a small attention layer looks in a sentence, in any language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from configurator.cli._training import Steps
from configurator.cli.options import Format, NHeads, NKvHeads, Output
from configurator.core.errors import UsageError

__all__ = ["heads"]

_STEPS = 500

Text = Annotated[str, typer.Argument(metavar="TEXT", help="A sentence, in quotes.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="TEXT", help="Cross-attention: TEXT looks at this other sentence."
    ),
]
Trained = Annotated[
    str | None,
    typer.Option(
        "--trained",
        metavar="TASK",
        help="Train two layers on induction, copy or recall first (default: random weights).",
    ),
]
Causal = Annotated[
    bool, typer.Option("--causal/--no-causal", help="A piece sees only what comes before it.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the weights.")]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Write the maps as SVG here.")
]


def heads(
    text: Text,
    source: Source = None,
    trained: Trained = None,
    n_heads: NHeads = 4,
    n_kv_heads: NKvHeads = None,
    causal: Causal = True,
    seed: Seed = 0,
    steps: Steps = None,
    plot: Plot = None,
    format: Format = None,
    output: Output = None,
) -> int:
    """Show where each head of a small attention layer looks in a sentence, in any language.

    Words are the pieces, or characters where a script has no spaces. A map is no explanation: a
    head need not have one job that can be named.
    """
    from configurator.cli._training import Live, check_files, need_torch
    from configurator.cli.output import deliver, form, write_whole

    quiet = output is not None and output.lower().endswith(".svg") and plot is format is None
    if quiet:
        plot, output = output, None
    chosen = form(format, output)
    if steps is not None and trained is None:
        raise UsageError(f"--steps {steps} trains nothing by itself; name a task with --trained")
    check_files(output, plot)
    need_torch("heads")
    from configurator.study.head_maps import maps
    from configurator.study.maps_document import document, picture

    live = Live()
    if trained is not None:
        live.total = steps or _STEPS
    with live.shown():
        found = maps(
            text,
            source=source,
            n_heads=4 if n_heads is None else n_heads,
            n_kv_heads=n_kv_heads,
            trained=trained,
            steps=steps or _STEPS,
            causal=causal,
            seed=seed,
            watch=live.watch,
        )
    if plot is not None:
        write_whole(Path(plot), picture(found))
        print(f"wrote {plot}", file=sys.stderr)
    if not quiet:
        deliver(found.to_dict(), lambda: document(found), chosen, output)
    return 0
