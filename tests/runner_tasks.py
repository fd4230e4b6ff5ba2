"""What workers do in the runner's tests; apart, so that a worker imports nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def square(item: dict[str, Any]) -> dict[str, Any]:
    return {"n": item["n"], "square": item["n"] ** 2}


def noted(item: dict[str, Any]) -> dict[str, Any]:
    """As ``square``; leaves a line in the file ``log``, so that a test can count the calls."""
    with open(item["log"], "a") as log:
        log.write(f"{item['n']}\n")
    time.sleep(item.get("sleep_s", 0.0))
    return square(item)


def fails_at_three(item: dict[str, Any]) -> dict[str, Any]:
    if item["n"] == 3:
        raise ValueError("three is\nnot allowed")
    return square(item)


def dies(item: dict[str, Any]) -> dict[str, Any]:
    """Ends its process at once: always where ``n`` is 3, the first time where it is 5."""
    if item["n"] == 3:
        os._exit(7)
    if item["n"] == 5:
        first = Path(item["mark"])
        if not first.exists():
            first.touch()
            os._exit(7)
    return square(item)


def span(item: dict[str, Any]) -> dict[str, Any]:
    """When it began and ended, by the machine's clock, in which process and on which device."""
    began = time.monotonic()
    time.sleep(item.get("sleep_s", 0.2))
    device = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {"began": began, "ended": time.monotonic(), "pid": os.getpid(), "device": device}


def gated(item: dict[str, Any]) -> dict[str, Any]:
    """Begins once the file ``gate`` is there; on the node it names, the second item takes long.

    The file ``log`` gets the Ray node of each item that begins.
    """
    import ray

    here, log, gate = ray.get_runtime_context().get_node_id(), Path(item["log"]), Path(item["gate"])
    with log.open("a") as file:
        file.write(here + "\n")
    until = time.monotonic() + 60
    while not gate.exists() and time.monotonic() < until:
        time.sleep(0.02)
    last = gate.read_text() == here and log.read_text().split().count(here) > 1
    time.sleep(60 if last else 0.2)
    return square(item)


def not_json(item: dict[str, Any]) -> Any:
    return {"n": float("nan")} if item["n"] == 1 else {"n": object()}
