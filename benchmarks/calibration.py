"""How well a calibrated machine predicts itself: order and error on points it did not fit.

Runs ``calibrate`` without keeping the profile and writes the table, the rows and a picture:

    python benchmarks/calibration.py [--output outputs/measurements]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from _report import today
from formulations import device_slug

from configurator.bench.calibrate import Calibration, calibrate
from configurator.bench.machine import default_device
from configurator.bench.words import calibration_document
from configurator.render.markdown import to_markdown
from configurator.render.plots import predicted_vs_measured


def rows(found: Calibration) -> list[dict[str, object]]:
    """Checked points as rows of a picture."""
    return [{**asdict(c), "projection": c.case.split()[0], "status": "ok"} for c in found.checked]


def document(found: Calibration) -> dict[str, object]:
    profile = asdict(found.profile)
    profile.pop("fingerprint")
    return {
        "tau": found.tau,
        "error": found.error,
        "seconds": found.seconds,
        "checked": [asdict(c) for c in found.checked],
        "profile": profile,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--budget", type=float, default=110.0, help="seconds")
    parser.add_argument("--output", type=Path, help="folder for the table, the rows, the picture")
    args = parser.parse_args()
    found = calibrate(args.device, budget_s=args.budget)
    shown = calibration_document(found, "")
    if args.output:
        stem = args.output / f"calibration_{device_slug(dict(found.profile.environment))}_{today()}"
        picture = stem.with_suffix(".svg")
        picture.write_text(predicted_vs_measured(rows(found), "Points that were not fitted"))
        shown = shown.with_pictures((picture.name, "Predicted against measured"))
        stem.with_suffix(".md").write_text(to_markdown(shown))
        stem.with_suffix(".json").write_text(json.dumps(document(found), indent=1) + "\n")
    sys.stdout.write(to_markdown(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
