"""The work of a run on a Ray cluster: where it may go, and what happens when a node leaves.

Every node needs this package in the driver's version. A device is named to Ray in one of two
ways: by a custom resource ``mha:<target>`` (``ray start --resources '{"mha:h100-sxm5-80gb": 1}'``,
as many as the node has of it), or by the accelerator type that Ray finds by itself.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from configurator.core.errors import MissingError, MissingExtra, UsageError, one_line
from configurator.workers import Outcome, Task, Work, died, perform

__all__ = ["Placement", "on_ray", "place"]

PATIENCE_S = 60.0  # how long a run waits for a node to come back that could do the work
POLL_S = 1.0
TRIES = 3
_VENDORS = {"nvidia", "amd", "intel", "tesla", "instinct", "radeon", "oam", "google", "aws"}

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placement:
    """What a task asks of a node, and how many at a time the nodes have room for."""

    options: dict[str, Any]
    needs: str
    unit: str

    def slots(self, nodes: Sequence[Node]) -> int:
        """Tasks that these nodes can run side by side; 0 where none can run any."""
        return sum(int(n.get(self.unit, 0)) for n in nodes if n.get(self.needs, 0) > 0)


def _words(name: str) -> set[str]:
    words = set(re.findall(r"[a-z0-9]+", name.lower())) - _VENDORS
    return {re.sub(r"(\d)gb$", r"\1g", word) for word in words}


def place(accelerator: Sequence[str], nodes: Sequence[Node]) -> Placement:
    """Where tasks go, from the resources of the nodes alive; one task at a time on each device.

    A custom resource ``mha:<name>`` comes first; else the accelerator type whose every word is in
    the name (``H100`` for ``h100-sxm5-80gb``), the longest if several are. Ray's type does not
    tell SXM from PCIe: each row's node lists its GPUs by name. Raises ``MissingError`` where no
    node has the device.
    """
    if not accelerator:
        return Placement({"num_cpus": 1}, "CPU", "CPU")
    names = [re.sub(r"^\d+x(?=[a-z])", "", name) for name in accelerator]
    for name in names:
        resource = f"mha:{name}"
        having = [n for n in nodes if n.get(resource, 0) > 0]
        if having:
            gpus = int(all(n.get("GPU", 0) > 0 for n in having))
            options = {"resources": {resource: 1}, "num_gpus": gpus, "num_cpus": 0}
            return Placement(options, resource, resource)
    prefix = "accelerator_type:"
    types = {k.removeprefix(prefix) for n in nodes for k in n if k.startswith(prefix)}
    fitting = [t for t in types if _words(t) and any(_words(t) <= _words(n) for n in names)]
    if fitting:
        best = max(sorted(fitting), key=lambda t: len(_words(t)))
        options = {"accelerator_type": best, "num_gpus": 1, "num_cpus": 0}
        return Placement(options, f"{prefix}{best}", "GPU")
    own = {k.removeprefix("mha:") for n in nodes for k in n if k.startswith("mha:")}
    there = ", ".join(sorted(types | own)) or "none"
    raise MissingError(
        f"no node of the cluster has {names[0]}; its accelerators: {there}; start the node with: "
        f"ray start --address HOST:6379 --resources '{{\"mha:{names[0]}\": 1}}'"
    )


def _connect(where: str) -> tuple[Any, bool]:
    """Ray, connected, and whether by us.

    Raises ``MissingExtra`` where it is not installed and ``MissingError`` without a cluster.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtra("cluster", error.name or "ray", "--on ray") from None
    if ray.is_initialized():  # the caller's own connection, and the caller's to close
        return ray, False
    address = os.environ.get("RAY_ADDRESS", "auto") if where == "ray" else where
    if address.startswith("ray://"):  # Ray itself would try for half a minute
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, ValueError) as error:
            raise _no_cluster(address, error) from None
    for left in reversed(range(TRIES if address.startswith("ray://") else 1)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            break
        except (ConnectionError, RuntimeError, ValueError, ImportError) as error:
            if isinstance(error, ImportError) or "ray[client]" in str(error):
                raise MissingExtra("cluster", "ray[client]", "--on ray://") from None
            # The head starts a server for each client, which fails now and then when it is busy.
            if not left:
                raise _no_cluster(address, error) from None
            time.sleep(POLL_S)
    return ray, True


def _no_cluster(address: str, error: Exception) -> MissingError:
    text = one_line(error, 200)
    return MissingError(
        f"no Ray cluster answers at {address} ({text}); start one with ray start --head, or give "
        "its address as --on ray://HOST:10001"
    )


def _nodes(ray: Any) -> list[Node]:
    return [dict(n["Resources"]) for n in ray.nodes() if n["Alive"]]


def perform_there(name: str, item: Any, version: str) -> dict[str, Any]:
    """:func:`configurator.workers.perform` on a node, which must have the driver's version."""
    import ray

    from configurator import __version__

    if __version__ != version:
        return {"version": __version__}
    found = perform(name, item)
    found["node"] = {**found["node"], "ray_node": ray.get_runtime_context().get_node_id()}
    return found


def on_ray(
    where: str,
    name: str,
    tasks: list[Task],
    may_start: Callable[[], bool],
    *,
    version: str,
    workers: int | None = None,
    accelerator: Sequence[str] = (),
    retries: int = 2,
) -> Work:
    """As many at a time as the cluster has room for; a task whose node leaves goes to another.

    Ray's own retries are off, so that every attempt is counted and a result that was lost with
    its node is done again. Raises ``MissingError`` as :func:`place` does and where the cluster
    itself goes away.
    """
    ray, ours = _connect(where)
    try:
        placement = place(accelerator, _nodes(ray))
        remote = ray.remote(perform_there).options(
            max_retries=0, scheduling_strategy="SPREAD", **placement.options
        )
        yield from _Run(ray, remote, placement, name, version, retries).over(
            tasks, may_start, workers
        )
    except ConnectionError as error:
        raise MissingError(
            f"the Ray cluster at {where} went away ({error}); finished rows are kept: the same "
            "command with --resume goes on"
        ) from None
    finally:
        if ours:
            ray.shutdown()


@dataclass(slots=True)
class _Run:
    ray: Any
    remote: Any
    placement: Placement
    name: str
    version: str
    retries: int

    def over(self, tasks: list[Task], may_start: Callable[[], bool], workers: int | None) -> Work:
        queue = deque((task, 1) for task in tasks)
        running: dict[Any, tuple[Task, int]] = {}
        alone_since: float | None = None
        while queue or running:
            slots = self.placement.slots(_nodes(self.ray))
            room = min(slots, workers or slots)
            while queue and len(running) < room and may_start():
                task, attempt = queue.popleft()
                running[self.remote.remote(self.name, task.item, self.version)] = (task, attempt)
            if not running and (slots or not may_start()):
                return
            ready: list[Any] = []
            if running:
                ready, _ = self.ray.wait(list(running), timeout=POLL_S)
            else:
                time.sleep(POLL_S)
            for reference in ready:
                task, attempt = running.pop(reference)
                outcome = self._outcome(reference, attempt)
                if outcome is None:
                    queue.appendleft((task, attempt + 1))
                else:
                    yield task, outcome
            alone_since = None if slots or ready else alone_since or time.monotonic()
            if alone_since is not None and time.monotonic() - alone_since > PATIENCE_S:
                what = self.placement.needs
                text = f"no node with {what} was left for {PATIENCE_S:g} s"
                for task, attempt in [*running.values(), *queue]:
                    yield task, died(text, attempt)
                return

    def _outcome(self, reference: Any, attempt: int) -> Outcome | None:
        """What came of one task; ``None`` where its worker or node died and it may be redone."""
        errors = self.ray.exceptions
        try:
            found = self.ray.get(reference)
        except errors.RayTaskError as error:
            text = one_line(error.cause, 200)
            raise _not_installed(text, self.version) from None
        except errors.RayError as error:
            if attempt <= self.retries:
                return None
            return died(f"{type(error).__name__}: {str(error).splitlines()[0][:300]}", attempt)
        if "status" not in found:
            raise _not_installed(f"it has version {found['version']}", self.version)
        return Outcome(**found, attempts=attempt)


def _not_installed(what: str, version: str) -> UsageError:
    return UsageError(
        f"a node of the cluster cannot run this ({what}); install mha-configurator {version} with "
        "the extras the command needs on every node"
    )
