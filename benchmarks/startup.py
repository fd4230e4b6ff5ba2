"""How long whole commands take beside the imports they cannot avoid, measured in one run.

    python benchmarks/startup.py [--repeats 15] [--output FILE]

Each command line is a process of its own, from start to exit. The rounds are interleaved (every
command once, then every command again), so that a busy machine slows all alike, and the ratio is
taken within each round: the table gives its median. Beside the time on the clock stands the time
of the processor, user and system, which a busy machine disturbs less. Python's own start is in
every time. Caches are warm: each command runs once before it counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _report import ROOT, environment, keep, today

PYTHON = [sys.executable]
TOOL = [*PYTHON, "-m", "configurator"]
RECOMMEND = ["recommend", "--params", "7B", "--context", "32k", "--target", "h100-sxm"]
GEOMETRY = ["--d-model", "4096", "--n-layers", "32", "--n-heads", "32", "--n-kv-heads", "8"]
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
Times = dict[str, list[tuple[float, float]]]
# name: (arguments, the floor it is compared with, the goal for the ratio)
FLOORS = {
    "python": [*PYTHON, "-c", "pass"],
    "typer, rich": [*PYTHON, "-c", "import typer, rich"],
    "numpy": [*PYTHON, "-c", "import numpy"],
    "numpy, pydantic, typer, rich": [*PYTHON, "-c", "import numpy, pydantic, typer, rich"],
}
COMMANDS: dict[str, tuple[list[str], str, float | None]] = {
    "--help": (["--help"], "typer, rich", 2.5),
    "recommend --help": (["recommend", "--help"], "typer, rich", None),
    "recommend": (RECOMMEND, "numpy, pydantic, typer, rich", 2.5),
    "recommend --format json": (
        [*RECOMMEND, "--format", "json"],
        "numpy, pydantic, typer, rich",
        None,
    ),
    "check": (["check", *GEOMETRY, "--target", "h100-sxm"], "numpy, pydantic, typer, rich", None),
    "compare": (
        ["compare", *GEOMETRY, "--target", "h100-sxm"],
        "numpy, pydantic, typer, rich",
        None,
    ),
    "audit": (["audit", "CONFIG"], "numpy, pydantic, typer, rich", None),
    "targets": (["targets"], "typer, rich", None),
    "models": (["models"], "typer, rich", None),
    "rules": (["rules"], "typer, rich", None),
}


def spent() -> float:
    """Processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(command: list[str]) -> tuple[float, float]:
    """One whole process, clock and processor; its exit code must be an answer, not a complaint."""
    began, before = time.perf_counter(), spent()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    took = time.perf_counter() - began, spent() - before
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return took


def available() -> set[str]:
    from configurator.cli.app import commands

    return set(commands())


def measure(repeats: int, config: Path) -> Times:
    lines = dict(FLOORS)
    for name, (arguments, _, _) in COMMANDS.items():
        if name == "--help" or name.partition(" ")[0] in available():
            lines[name] = TOOL + [str(config) if a == "CONFIG" else a for a in arguments]
    found: Times = {name: [] for name in lines}
    for round_ in range(repeats + 1):
        for name, line in lines.items():
            took = seconds(line)
            if round_:
                found[name].append(took)
    return found


def profile(arguments: list[str], most: int = 12) -> list[tuple[float, str]]:
    """Modules that cost most to import by themselves, in ms, from ``-X importtime``."""
    command = [*PYTHON, "-X", "importtime", "-m", "configurator", *arguments]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
    own: dict[str, float] = {}
    for self_us, name in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)", text):
        parts = name.split(".")
        package = ".".join(parts[:3]) if parts[0] in ("configurator", "rules") else parts[0]
        own[package] = own.get(package, 0.0) + int(self_us) / 1000
    return sorted(((ms, name) for name, ms in own.items()), reverse=True)[:most]


def table(found: Times) -> list[dict[str, Any]]:
    rows = []
    for name, times in found.items():
        clock, processor = ([t[i] for t in times] for i in (0, 1))
        row: dict[str, Any] = {
            "name": name,
            "median_s": statistics.median(clock),
            "low_s": min(clock),
            "high_s": max(clock),
            "processor_s": statistics.median(processor),
        }
        if name in COMMANDS:
            _, floor, goal = COMMANDS[name]
            ratios = [
                [t[i] / f[i] for t, f in zip(times, found[floor], strict=True)] for i in (0, 1)
            ]
            row |= {"floor": floor, "goal": goal}
            row["ratio"], row["processor_ratio"] = map(statistics.median, ratios)
        rows.append(row)
    return rows


def markdown(report: dict[str, Any]) -> str:
    env = report["environment"]
    lines = [
        "# Start-up: whole processes, one run",
        "",
        f"{env['processor']}, {env['cores']} cores; Python {env['python']}; {report['date']}; "
        f"medians of {report['repeats']} interleaved rounds. Made by "
        "`python benchmarks/startup.py`.",
        "",
        "| process | median ms | lowest | highest | processor | times (clock) | (processor) | of "
        "| goal |",
        "|---|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in report["rows"]:
        ratio = f"{row['ratio']:.2f} | {row['processor_ratio']:.2f}" if "ratio" in row else " | "
        goal = f"{row['goal']}" if row.get("goal") else ""
        times = (row["median_s"], row["low_s"], row["high_s"], row["processor_s"])
        shown = " | ".join(f"{1e3 * value:.0f}" for value in times)
        lines.append(f"| {row['name']} | {shown} | {ratio} | {row.get('floor', '')} | {goal} |")
    for name, modules in report["profiles"].items():
        lines += ["", f"Imports of `{name}`, ms by itself (`-X importtime`, which slows them): "]
        lines[-1] += ", ".join(f"{module} {ms:.1f}" for ms, module in modules) + "."
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--output", type=Path, help="a folder, or a file's name")
    given = parser.parse_args()
    os.environ["COLUMNS"] = "100"

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(LLAMA))
        rows = table(measure(given.repeats, config))
    report = {
        "date": today(),
        "repeats": given.repeats,
        "environment": environment(),
        "rows": rows,
        "profiles": {"--help": profile(["--help"]), "recommend": profile(RECOMMEND)},
    }
    keep("startup", report, markdown(report), given.output)


if __name__ == "__main__":
    main()
