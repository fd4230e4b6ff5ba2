"""Where a measurement is kept: ``outputs/measurements/WHAT_DEVICE_DATE``, as text and as data."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def environment() -> dict[str, Any]:
    """The machine and the versions, without its name."""
    from configurator.workers import node

    return {key: value for key, value in node().items() if key != "host"}


def today() -> str:
    return time.strftime("%Y-%m-%d")


def keep(what: str, report: dict[str, Any], text: str, output: Path | None) -> None:
    """Print ``text``; with ``output`` write it and the data there: a folder, or a file's name."""
    from configurator.cli.output import write_whole

    print(text)
    if output is None:
        return
    if output.is_dir():
        env = report["environment"]
        words = re.sub(r"\(.*?\)|processor|cpu", " ", env["processor"].lower())
        device = "-".join(re.findall(r"[a-z0-9]+", words)) or "machine"
        output = output / f"{what}_{env['cores']}-core-{device}_{report['date']}"
    write_whole(output.with_name(output.name + ".md"), text)
    write_whole(output.with_name(output.name + ".json"), json.dumps(report, indent=1) + "\n")
    print(f"wrote {output}.md and .json", file=sys.stderr)
