"""Who does the work of a run: this process, or local processes that may die.

Workers import the function by name and get plain JSON, so what runs here runs on another machine.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from configurator.core.errors import one_line
from configurator.rows import canonical

__all__ = ["Outcome", "Task", "Work", "died", "here", "local", "name_of", "perform"]


@dataclass(frozen=True, slots=True)
class Task:
    """One item of a run and its place in it."""

    key: str
    index: int
    item: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one task."""

    status: str
    row: Any = None
    reason: str = ""
    attempts: int = 1
    seconds: float = 0.0
    node: dict[str, Any] = field(default_factory=dict)


Work = Generator[tuple[Task, Outcome], None, None]


def died(what: str, attempts: int, node: dict[str, Any] | None = None) -> Outcome:
    """The outcome of a task whose workers died as often as is allowed."""
    times = "once" if attempts == 1 else f"{attempts} times"
    return Outcome(status="failed", reason=f"{what} ({times})", attempts=attempts, node=node or {})


def name_of(function: Callable[[Any], Any], *, importable: bool) -> str:
    """``module:name`` of a function; raises ``ValueError`` where workers could not import it."""
    name = f"{function.__module__}:{function.__qualname__}"
    if importable and ("<" in name or function.__module__ == "__main__"):
        raise ValueError(
            f"workers cannot import {name}; define it at the top of a module that they can import"
        )
    return name


def perform(name: str, item: Any) -> dict[str, Any]:
    """Import ``name``, do one item, and say what came of it, in plain values.

    What the function raises is an answer (a failed row), not a reason to try again.
    """
    module, _, attribute = name.partition(":")
    return _outcome(getattr(import_module(module), attribute), item)


def _outcome(function: Callable[[Any], Any], item: Any) -> dict[str, Any]:
    started = time.perf_counter()
    row, reason = None, ""
    try:
        row = function(item)
        canonical(row)
    except (Exception, SystemExit) as error:
        row = None
        reason = one_line(f"{type(error).__name__}: {error}", 500)
    return {
        "status": "failed" if reason else "ok",
        "row": row,
        "reason": reason,
        "seconds": time.perf_counter() - started,
        "node": node(),
    }


@lru_cache(maxsize=1)
def node() -> dict[str, Any]:
    """The machine of this process: host, processor, GPUs by name, versions. Nothing is measured."""
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpus": _gpus(),
        "packages": {},
    }
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        found["visible_devices"] = os.environ["CUDA_VISIBLE_DEVICES"]
    for package in ("mha-configurator", "numpy", "torch", "ray"):
        try:
            found["packages"][package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpus() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def here(function: Callable[[Any], Any], tasks: list[Task], may_start: Callable[[], bool]) -> Work:
    """One after the other, in this process."""
    for task in tasks:
        if not may_start():
            return
        yield task, Outcome(**_outcome(function, task.item))


def _visible_devices() -> list[str]:
    """GPUs of this machine that a process may use, by the name that selects each."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return [d.strip() for d in listed.split(",") if d.strip() and d.strip() != "-1"]
    folder = Path("/proc/driver/nvidia/gpus")
    return [str(i) for i, _ in enumerate(folder.iterdir())] if folder.is_dir() else []


def _begin(device: str | None) -> None:
    """First thing in a worker: leave Ctrl-C to the driver, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Worker:
    """One process at a time, replaced when it dies: so a death is laid to the item it was doing."""

    def __init__(self, device: str | None) -> None:
        self.device = device
        self.start()

    def start(self) -> None:
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self.device,),
        )

    def submit(self, name: str, task: Task) -> Future[dict[str, Any]]:
        before = set(multiprocessing.active_children())
        future = self.pool.submit(perform, name, task.item)
        if self.process is None:  # the first item starts the process
            self.process = next(iter(set(multiprocessing.active_children()) - before), None)
        return future

    def replace(self) -> str:
        """Start anew after a death; says how the process ended."""
        self.pool.shutdown(wait=True)
        code = self.process.exitcode if self.process else None
        self.start()
        if code is None or code >= 0:
            return f"the worker process ended with exit code {code}"
        return f"the worker process was ended by signal {-code}"

    def stop(self, *, now: bool) -> None:
        if now and self.process is not None and self.process.is_alive():
            self.process.kill()
        self.pool.shutdown(wait=True, cancel_futures=True)


def local(
    name: str,
    tasks: list[Task],
    may_start: Callable[[], bool],
    *,
    workers: int | None = None,
    exclusive: bool = False,
    retries: int = 2,
) -> Work:
    """On ``workers`` processes; with ``exclusive`` one for each visible GPU, or a single one."""
    devices: list[str | None] = [None]
    if exclusive:
        devices = list(_visible_devices()) or devices
    count = min(workers or (os.cpu_count() or 1), len(tasks))
    count = min(count, len(devices)) if exclusive else count
    idle = [_Worker(devices[i] if exclusive else None) for i in range(count)]
    everyone = list(idle)
    queue = deque((task, 1) for task in tasks)
    running: dict[Future[dict[str, Any]], tuple[_Worker, Task, int]] = {}
    finished = False
    try:
        while queue or running:
            while queue and idle and may_start():
                worker, (task, attempt) = idle.pop(), queue.popleft()
                running[worker.submit(name, task)] = (worker, task, attempt)
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                worker, task, attempt = running.pop(future)
                idle.append(worker)
                try:
                    outcome = Outcome(**future.result(), attempts=attempt)
                except BrokenProcessPool:
                    how = worker.replace()
                    if attempt <= retries:
                        queue.appendleft((task, attempt + 1))
                        continue
                    outcome = died(how, attempt)
                yield task, outcome
        finished = True
    finally:
        for worker in everyone:
            worker.stop(now=not finished)
