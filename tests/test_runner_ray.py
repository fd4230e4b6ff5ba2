"""The runner on a real Ray cluster of two nodes on this machine, one of them killed on the way."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import runner_tasks as tasks

from configurator import cluster
from configurator.cli import main
from configurator.core.errors import MissingError, MissingExtra, UsageError
from configurator.rows import read_rows
from configurator.runner import run_map

pytest.importorskip("ray", reason="ray is not installed: pip install 'mha-configurator[cluster]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    # Ray's own: sockets and files that its node processes leave to the collector
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*:pytest.PytestUnraisableExceptionWarning"),
]

TARGET = "h100-sxm5-80gb"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


CLIENT_PORT = _free_port()


def start(cluster_of: Any, tries: int = 2) -> Any:
    """Two nodes; Ray gives a node 30 s to start, which a busy machine may not manage at once."""
    head = {
        "num_cpus": 2,
        "ray_client_server_port": CLIENT_PORT,
        # A lost node is noticed in 5 s (15 by default); sooner, and a busy one would seem lost.
        "_system_config": {"health_check_period_ms": 1000, "health_check_failure_threshold": 5},
    }
    found = None
    try:
        found = cluster_of(initialize_head=True, head_node_args=head)
        found.add_node(num_cpus=1, resources={f"mha:{TARGET}": 1, "mha:pair": 1})
    except Exception:
        if found is not None:
            found.shutdown()
        if tries == 1:
            raise
        return start(cluster_of, tries - 1)
    return found


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[Any]:
    """A head and a node; the node has two of a device, by name (no GPU is needed for that)."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        folder = str(Path(__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(Path(folder).parent)]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = start(Cluster)
        patch.setenv("RAY_ADDRESS", found.address)
        try:
            yield found
        finally:
            found.shutdown()


def numbers(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"n": n, **more} for n in range(count)]


def test_rows_come_from_both_nodes(two_nodes: Any) -> None:
    rows = run_map(tasks.span, numbers(9), on="ray")
    assert [row["status"] for row in rows] == ["ok"] * 9
    assert [row["item"]["n"] for row in rows] == list(range(9))
    assert len({row["node"]["ray_node"] for row in rows}) == 2


def test_timings_go_to_the_node_that_has_the_device_one_at_a_time(two_nodes: Any) -> None:
    rows = run_map(tasks.span, numbers(4), on="ray", accelerator=f"2x{TARGET}")
    assert len({row["node"]["ray_node"] for row in rows}) == 1
    spans = sorted((row["row"]["began"], row["row"]["ended"]) for row in rows)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_bench_goes_to_a_node_that_has_the_target(
    two_nodes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command measures on the node that was started with the target's name."""
    pytest.importorskip("torch")
    code = main(
        ["bench", "--d-model", "256", "--n-heads", "4", "--n-kv-heads", "2", "--d-head", "64",
         "--n-layers", "2", "--context", "512", "--target", TARGET, "--on", "ray", "--phase",
         "decode", "--formulations", "folded", "--only", "--format", "json"]
    )  # fmt: skip
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert code == 0, err
    assert "Run the same command there" not in err
    assert all(row["cache_bytes_measured"] == row["cache_bytes_predicted"] for row in found["rows"])
    assert {row["formulation"] for row in found["rows"]} == {"folded"}


def test_bench_says_which_target_no_node_has(
    two_nodes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(
        ["bench", "--d-model", "256", "--n-heads", "4", "--n-layers", "2", "--context", "512",
         "--target", "mi300x", "--on", "ray"]
    )  # fmt: skip
    assert code == 3
    assert "no node" in capsys.readouterr().err


def test_a_device_that_no_node_has(two_nodes: Any) -> None:
    with pytest.raises(
        MissingError, match=f"no node .* has mi300x; its accelerators: {TARGET}, pair;"
    ):
        run_map(tasks.square, numbers(1), on="ray", accelerator="mi300x")


def test_a_worker_that_dies_costs_only_its_own_item(two_nodes: Any, tmp_path: Path) -> None:
    items = numbers(7, mark=str(tmp_path / "mark"))
    rows = run_map(tasks.dies, items, on="ray", retries=1)
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["failed"] + ["ok"] * 3
    assert [row["attempts"] for row in rows] == [1, 1, 1, 2, 1, 2, 1]
    assert rows[3]["reason"].startswith("WorkerCrashedError: ")
    assert rows[3]["reason"].endswith("(2 times)")


def test_nodes_of_another_version_are_refused(
    two_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("configurator.__version__", "99.0")
    with pytest.raises(UsageError, match=r"it has version \S+\); install mha-configurator 99\.0"):
        run_map(tasks.square, numbers(1), on="ray")


def test_an_interrupted_run_is_resumed(
    two_nodes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, file = tmp_path / "log", tmp_path / "rows.jsonl"
    items = numbers(6, log=str(log))

    def stop(row: Any, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_map(tasks.noted, items, on="ray", workers=1, resume=file, progress=stop)
    assert f"interrupted: 2 of 6 rows kept in {file}; --resume" in capsys.readouterr().err
    finished = [row["item"]["n"] for row in read_rows(file)[0]]
    rows = run_map(tasks.noted, items, on="ray", resume=file)
    assert [row["status"] for row in rows] == ["ok"] * 6
    calls = log.read_text().split()
    assert all(calls.count(str(n)) == 1 for n in finished)
    assert sorted(row["item"]["n"] for row in read_rows(file)[0]) == list(range(6))


def test_a_node_killed_in_the_middle_loses_and_doubles_nothing(
    two_nodes: Any, tmp_path: Path
) -> None:
    """Two nodes begin together; one is killed in the middle of its second item."""
    file, log, gate = tmp_path / "rows.jsonl", tmp_path / "log", tmp_path / "gate"
    log.touch()
    second = two_nodes.add_node(num_cpus=1, resources={"mha:pair": 1})
    rows_at_the_kill: list[int] = []

    def begun() -> list[str]:
        return log.read_text().split()

    def wait(ready: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not ready() and time.monotonic() < until:
            time.sleep(0.02)

    def kill() -> None:
        wait(lambda: len(set(begun())) == 2)
        (tmp_path / "new").write_text(second.node_id)
        (tmp_path / "new").rename(gate)
        wait(lambda: begun().count(second.node_id) == 2)
        rows_at_the_kill.append(len(read_rows(file)[0]))
        two_nodes.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    items = numbers(8, log=str(log), gate=str(gate))
    rows = run_map(tasks.gated, items, on="ray", accelerator="pair", resume=file)
    killer.join()
    assert 1 <= rows_at_the_kill[0] < 8
    assert [row["status"] for row in rows] == ["ok"] * 8
    assert second.node_id in {row["node"]["ray_node"] for row in rows}  # what it finished is kept
    assert sorted(row["attempts"] for row in rows) == [1] * 7 + [2]  # and one was redone elsewhere
    assert sorted(row["item"]["n"] for row in read_rows(file)[0]) == list(range(8))


def test_a_device_that_left_for_good_ends_the_run(
    two_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 1.0)

    def leave(row: Any, done: int, total: int) -> None:
        monkeypatch.setattr(cluster, "_nodes", lambda ray: [])  # none is alive any more

    rows = run_map(tasks.span, numbers(3), on="ray", accelerator=("h100", TARGET), progress=leave)
    assert [row["status"] for row in rows] == ["ok", "failed", "failed"]
    assert rows[2]["reason"] == f"no node with mha:{TARGET} was left for 1 s (once)"


def test_a_laptop_reaches_the_cluster_by_its_client_port(two_nodes: Any, tmp_path: Path) -> None:
    """``ray://HOST:PORT``: a driver that is not part of the cluster; a worker dies on the way."""
    pytest.importorskip("grpc", reason="Ray's client needs grpcio: pip install 'ray[client]'")
    items = numbers(7, mark=str(tmp_path / "mark"))
    address = f"ray://127.0.0.1:{CLIENT_PORT}"
    rows = run_map(tasks.dies, items, on=address, retries=1, accelerator=TARGET)
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["failed"] + ["ok"] * 3
    assert rows[5]["attempts"] == 2


def test_no_cluster_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingError, match=r"no Ray cluster answers at ray://127\.0\.0\.1:9 \("):
        run_map(tasks.square, numbers(1), on="ray://127.0.0.1:9")


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r'pip install "mha-configurator\[cluster\]"'):
        run_map(tasks.square, numbers(1), on="ray")


def test_a_client_address_needs_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def init(**_: Any) -> None:  # what Ray 2.60 says without grpcio
        raise ValueError("Ray Client requires pip package `ray[client]`. If you installed ...")

    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MissingExtra, match=r"--on ray:// needs ray\[client\]; install it with"):
            run_map(tasks.square, numbers(1), on=address)


NODES = [
    {"CPU": 8, "GPU": 4, "accelerator_type:A100": 1},
    {"CPU": 8, "GPU": 2, "accelerator_type:A100-80G": 1, "accelerator_type:A100": 1},
    {"CPU": 8, "GPU": 1, "accelerator_type:H100": 1},
    {"CPU": 8, "GPU": 8, "accelerator_type:AMD-Instinct-MI300X-OAM": 1},
    {"CPU": 4, "mha:jetson-agx-orin-64gb": 1},
]


@pytest.mark.parametrize(
    ("names", "needs", "slots", "gpus"),
    [
        ((), "CPU", 36, None),
        (("a100-sxm4-80gb",), "accelerator_type:A100-80G", 2, 1),
        (("a100-pcie-40gb",), "accelerator_type:A100", 6, 1),
        (("4xh100-sxm5-80gb",), "accelerator_type:H100", 1, 1),
        (("mi300x",), "accelerator_type:AMD-Instinct-MI300X-OAM", 8, 1),
        (("orin", "jetson-agx-orin-64gb"), "mha:jetson-agx-orin-64gb", 1, 0),
    ],
)
def test_where_a_target_is_measured(
    names: tuple[str, ...], needs: str, slots: int, gpus: int | None
) -> None:
    found = cluster.place(names, NODES)
    assert found.needs == needs
    assert found.slots(NODES) == slots
    assert found.options.get("num_gpus") == gpus
