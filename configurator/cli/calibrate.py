"""Measure this machine once and keep its profile for `--target host`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configurator.cli.options import Budget, Format, Output
from configurator.core.errors import MissingExtra

__all__ = ["calibrate"]


def calibrate(
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="Torch's name: cpu, cuda, mps."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the profile for --target host.")
    ] = True,
    budget: Budget = None,
    format: Format = None,
    output: Output = None,
) -> None:
    """Measure this machine once and keep its profile for `--target host`.

    Takes under two minutes and some 2 GiB of memory. Predictions for `host` then come from it,
    with the error it showed on points that were not fitted.
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("bench", "torch", "calibrate") from None
    from configurator.attention.device import pick_device
    from configurator.bench.calibrate import calibrate as measure
    from configurator.bench.machine import default_device
    from configurator.bench.words import calibration_document
    from configurator.cli.bench import progress_bar
    from configurator.cli.output import check_writable, deliver, form
    from configurator.core.units import parse_seconds
    from configurator.host import save_profile

    chosen = form(format, output)
    if output is not None:
        check_writable("--output", Path(output))
    seconds = parse_seconds(budget or "100s")
    with progress_bar() as told:
        found = measure(
            default_device() if device is None else pick_device(device),
            budget_s=seconds,
            progress=lambda done, total, case: told(case, done, total),
        )
    where = str(save_profile(found.profile)) if keep else ""
    deliver(found, lambda: calibration_document(found, where), chosen, output)
