"""Runs over many points: rows kept, budgets, resuming, and the commands' exit codes."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace

import pytest

torch = pytest.importorskip("torch")

from configurator.bench import measure, verify
from configurator.bench import point as point_module
from configurator.bench import sweep as sweep_module
from configurator.bench import verification as verification_module
from configurator.bench.cases import alternatives, points_of
from configurator.bench.ceilings import Ceilings
from configurator.bench.machine import Machine
from configurator.bench.point import OverBudget
from configurator.bench.points import Point, attention_to
from configurator.bench.sweep import document, measurements, rows_file, run, winners
from configurator.bench.verification import geometries, order, scaled
from configurator.bench.words import bench_document
from configurator.cli import main
from configurator.core.errors import UsageError
from configurator.core.examples import example, example_device
from configurator.core.report import Measurement
from configurator.core.shapes import geometry
from configurator.render.markdown import to_markdown

SMALL = geometry(d_model=128, n_heads=4, n_kv_heads=2, d_head=32)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """No ceilings are measured, and nothing is written outside the test's folder."""
    ceilings = Ceilings(
        read_bytes_per_s=2e10, copy_bytes_per_s=1e10, flops_per_s={"fp32": 1e11}, overhead_s=1e-6,
        reads={}, working_set_bytes=1 << 30,
    )  # fmt: skip
    machine = Machine(
        torch_device="cpu", target=example_device(name="host"), ceilings=ceilings, cache_bytes=0
    )
    for module in (point_module, verification_module):
        monkeypatch.setattr(module, "machine", lambda device: machine)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for one another are slow on a busy machine
    yield
    torch.set_num_threads(threads)


def at(context, **changes):
    return Point(attention=attention_to(SMALL), context=context, limit_s=0.01, **changes)


def row(case="a", formulation="sdpa", measured=1.0, **changes):
    values = {
        "case": case, "formulation": formulation, "path": "fused (flash)",
        "cache_bytes_predicted": 8, "cache_bytes_measured": 8, "predicted_s": 1.0,
        "measured_s": measured, "spread_s": 0.0, "bytes_per_s": 8.0, "share_of_bandwidth": 0.5,
        "status": "ok", "projection": "GQA",
    } | changes  # fmt: skip
    return Measurement(**values)


done: list[int] = []


def fake(item):
    """In place of the measurement: one size runs out of memory, one is over the budget."""
    point = Point.from_item(item)
    done.append(point.context)
    if point.context == 1:
        raise KeyboardInterrupt
    if point.context == 2:
        raise OverBudget("takes about 9 s and 1 s are left")
    if point.context == 3:
        raise ValueError("something else")
    if point.context == 262_144:
        status = "out of memory: needs 9 bytes, 8 are free"
        rows = [row(point.case, "", None, status=status, cache_bytes_measured=None)]
    else:
        rows = [row(point.case, name, s) for name, s in (("sdpa", 2.0), ("folded", 1.0))]
    rows = [replace(r, context=point.context) for r in rows]
    return {"rows": [asdict(r) for r in rows], "environment": {"torch": "x", "cores": 2}}


@pytest.fixture
def faked(monkeypatch):
    done.clear()
    monkeypatch.setattr(sweep_module, "measure_point", fake)


# --- the sweep -----------------------------------------------------------------------------


def test_a_size_without_memory_is_a_row_and_the_sweep_goes_on(faked):
    # The public case: 16,384 and 65,536 fit, 262,144 does not, 131,072 comes after it and fits.
    found = document(run([at(c) for c in (16_384, 65_536, 262_144, 131_072)]))
    status = {r["context"]: r["status"] for r in found["rows"]}
    assert len(done) == 4
    assert sum(s == "ok" for s in status.values()) == 3
    assert [c for c, s in status.items() if s.startswith("out of memory")] == [262_144]
    assert len(found["best"]) == 3
    assert found["best"][0]["formulation"] == "folded"


def test_a_point_over_the_budget_is_a_row_that_says_so(faked):
    found = document(run([at(2), at(8), at(3)]))
    status = sorted(r["status"] for r in found["rows"] if r["status"] != "ok")
    assert status[0].startswith("failed: ValueError: something else")
    assert "not run: takes about 9 s and 1 s are left" in status[1]


def test_after_the_budget_no_point_is_begun(faked):
    found = document(run([at(8), at(16)], budget_s=1e-9))
    assert {r["status"] for r in found["rows"]} == {
        "not run: not started: the budget of 1e-09 s was spent"
    }
    assert done == []


def test_an_interrupted_sweep_keeps_its_rows_and_goes_on(faked, tmp_path, capsys, monkeypatch):
    keep = tmp_path / "rows.jsonl"
    points = [at(16), at(1), at(8)]
    with pytest.raises(KeyboardInterrupt):
        run(points, keep=keep)
    assert f"--resume {keep} goes on" in capsys.readouterr().err
    kept = [json.loads(line) for line in keep.read_text().splitlines()]
    assert [k["item"]["context"] for k in kept] == [16]
    done.clear()
    monkeypatch.setattr(Point, "from_item", classmethod(lambda cls, item: at(item["context"] + 4)))
    run(points, resume=str(keep))
    assert done == [5, 12]  # 16 was taken over; 1 and 8 are done, seen as 5 and 12


def test_parts_of_a_sweep_are_disjoint(faked):
    points = [at(c) for c in (8, 16, 32, 64, 128)]
    first = {r["item"]["context"] for r in run(points, shard="1/2")}
    second = {r["item"]["context"] for r in run(points, shard="2/2")}
    assert not first & second
    assert first | second == {8, 16, 32, 64, 128}


def test_a_real_point_goes_through(tmp_path):
    (result,) = run([at(64, formulations=("folded",))], budget_s=60)
    (found,) = document([result])["rows"]
    assert (found["formulation"], found["cache_bytes_measured"]) == ("folded", 64 * 2 * 64 * 2)
    assert measurements([found])[0].flags == tuple(found["flags"])


def test_rows_of_several_machines_keep_their_environments(faked):
    first, second = run([at(8), at(16)])
    second["row"]["environment"] = {"torch": "y", "cores": 4}
    found = document([first, second])
    assert found["environment"]["torch"] == "x"
    assert [e["torch"] for e in found["environments"]] == ["y"]


def test_disturbed_and_suspect_rows_do_not_win():
    rows = [
        asdict(row("a", "fast", 0.1, status="disturbed")),
        asdict(row("a", "wrong", 0.01, status="suspect")),
        asdict(row("a", "fair", 1.0)),
    ]
    assert [r["formulation"] for r in winners(rows)] == ["fair"]


def test_where_rows_are_kept(tmp_path, monkeypatch):
    assert rows_file().parent == tmp_path / "state" / "mha-configurator"
    assert rows_file("x/bench.json").parent.name == "x"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert rows_file().parent.is_dir()


# --- points of a case ----------------------------------------------------------------------


def test_alternatives_of_a_geometry():
    found = alternatives(geometry(d_model=4096, n_heads=32, n_kv_heads=4))
    assert [a.n_kv_heads for a in found] == [4, 32, 8, 1]
    assert [a.n_kv_heads for a in alternatives(geometry(d_model=64, n_heads=4))] == [4, 1]
    latent = geometry(d_model=512, n_heads=4, kv_lora_rank=64)
    assert alternatives(latent) == [latent]


def test_points_follow_the_trend_and_the_window():
    case = example(context=8192, window=1024, full_every=4)
    found = points_of(case, [case.attention], device="cpu")
    decode = [(p.context, p.window) for p in found if p.phase == "decode"]
    assert decode == [(8192, 0), (8192, 1024), (2048, 0), (512, 0)]
    assert sorted(p.context for p in found if p.phase == "prefill") == [512, 2048, 4096]


def test_compiled_points_only_where_asked():
    case = example(context=1024)
    found = points_of(case, [case.attention], device="cpu", compiled=True, trend=False)
    assert [p.compiled for p in found if p.phase == "decode"] == [False, True]
    with pytest.raises(UsageError, match="phase 'train' is not known"):
        points_of(case, [case.attention], device="cpu", phases=["train"])


# --- verification --------------------------------------------------------------------------


def test_a_recommendation_is_verified_with_exact_bytes():
    found = verify([SMALL, geometry(d_model=128, n_heads=4)], context=64, budget_s=30)
    assert found.bytes_exact
    assert found.command == ""
    assert "cache bytes are exact in 2 of 2 geometries" in found.sentence
    assert len({r.case for r in found.rows}) == 2


def test_bytes_that_differ_are_shouted(monkeypatch):
    monkeypatch.setattr(Point, "cache_bytes", 7)
    found = verify([SMALL], context=64, budget_s=30)
    assert not found.bytes_exact
    assert "measured cache bytes DIFFER from the prediction" in found.sentence


def test_elsewhere_than_on_the_target_it_says_so():
    found = verify([SMALL], "h100-sxm", context=1024, budget_s=30)
    assert "which is not h100-sxm" in found.sentence
    assert "Times here say nothing about h100-sxm" in found.sentence
    assert found.command == (
        "mha-configurator bench --d-model 128 --n-heads 4 --n-kv-heads 2 --d-head 32 "
        "--context 1024 --batch 1 --kv-dtype bf16 --target host"
    )
    # 1024 tokens x 2 heads x 64 values x 2 bytes
    assert {r.cache_bytes_measured for r in found.rows} == {262_144}


def test_what_there_was_no_time_for_has_its_bytes_checked_all_the_same():
    rows = measure([SMALL], context=1024, budget_s=1e-9)
    assert [(r.cache_bytes_measured, r.status[:7]) for r in rows] == [(262_144, "not run")]


def test_a_size_too_large_for_this_machine_is_scaled_down():
    shapes = [geometry(d_model=4096, n_heads=32)]
    # 16,384 bytes a token; an eighth of 8 GiB is 1 GiB, and 256 MiB is the most
    assert scaled(shapes, 131_072, 8, "bf16", 8 << 30) == (16_384, 1)
    assert scaled(shapes, 1024, 1, "bf16", 8 << 30) == (1024, 1)
    assert scaled(shapes, 1 << 20, 1, "bf16", 1 << 20) == (512, 1)


def test_only_clear_pairs_are_compared():
    rows = [
        row("a", "x", 1.0, predicted_s=1.0),
        row("a", "y", 9.0, predicted_s=1.0),  # not the fastest of its case
        row("b", "x", 2.0, predicted_s=1.1),  # predicted equal to a
        row("c", "x", 1.5, predicted_s=3.0),
        row("d", "x", 0.1, predicted_s=9.0, status="disturbed"),
    ]
    # a < c as predicted; b < c was predicted and c is faster
    assert order(rows) == (1, 2)


def test_geometries_of_a_report():
    recommend = pytest.importorskip("configurator").recommend
    request = pytest.importorskip("configurator").Request
    report = recommend(request(params="350M", context="8k", batch=2)).report
    shapes, work = geometries(report)
    first = report.recommendation
    assert (shapes[0].n_heads, shapes[0].kv_heads) == (first.n_heads, first.n_kv_heads)
    assert len(shapes) > 1
    assert (work["context"], work["batch"]) == (8192, 2)


# --- words and commands --------------------------------------------------------------------


def test_words_lead_with_the_answer_and_name_what_failed():
    rows = [
        asdict(row("a", "sdpa", 2.0)),
        asdict(row("a", "folded", 1.0)),
        asdict(row("b", "", None, status="out of memory: needs 9 bytes, 8 are free")),
    ]
    text = to_markdown(bench_document({"rows": rows, "environment": {"torch": "2"}}))
    assert "Cache bytes exact. a: 1 s (folded, 50% of the bandwidth), predicted 1 s" in text
    assert "use folded; sdpa (fused (flash)) takes 2.0 times as long" in text
    assert "b, decode: out of memory: needs 9 bytes, 8 are free" in text


def test_words_of_bytes_that_differ():
    rows = [asdict(row("a", "", None, status="bytes differ", cache_bytes_measured=9))]
    found = bench_document({"rows": rows, "environment": {}})
    assert not found.good
    assert "a: 8, is 9" in to_markdown(found)


ARGS = ["--d-model", "128", "--n-heads", "4", "--n-kv-heads", "2", "--n-layers", "2"]


def bench(capsys, *more):
    code = main(["bench", *ARGS, "--context", "256", "--device", "cpu", *more])
    return code, capsys.readouterr()


def test_bench_answers_in_json(capsys, tmp_path):
    code, said = bench(capsys, "--format", "json", "--formulations", "sdpa,folded", "--only")
    found = json.loads(said.out)
    assert code == 0
    keys = {"case", "formulation", "path", "cache_bytes_predicted", "cache_bytes_measured",
            "predicted_s", "measured_s", "spread_s", "bytes_per_s", "share_of_bandwidth",
            "status"}  # fmt: skip
    assert all(keys <= set(r) for r in found["rows"])
    # the whole cache: 2 layers x 256 tokens x 2 heads x 64 values x 2 bytes
    assert found["cache"]["measured_bytes"] == found["cache"]["predicted_bytes"] == 131_072
    assert found["environment"]["device"] == "cpu"
    assert "--d-model 128" in found["command"]
    assert list((tmp_path / "state" / "mha-configurator").iterdir()) == []


def test_bench_ends_with_1_where_bytes_differ(capsys, monkeypatch):
    monkeypatch.setattr(Point, "cache_bytes", 7)
    code, said = bench(capsys, "--only", "--phase", "decode")
    assert code == 1
    assert "Measured cache bytes differ from the prediction" in said.out


def test_bench_ends_with_0_where_a_row_ran_out_of_memory(capsys, monkeypatch):
    monkeypatch.setattr(point_module, "free_bytes", lambda device: 100)
    code, said = bench(capsys, "--only", "--phase", "decode", "--format", "json")
    rows = json.loads(said.out)["rows"]
    assert code == 0
    assert all(r["status"].startswith("out of memory: needs") for r in rows)


def test_bench_writes_its_pictures_beside_the_report(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    report = tmp_path / "bench.md"
    code, said = bench(
        capsys, "--formulations", "folded", "--phase", "decode", "--output", str(report)
    )
    assert code == 0
    names = sorted(p.name for p in tmp_path.iterdir() if p.is_file())
    if "no picture" not in said.err:  # every row may have been disturbed
        assert names == ["bench.latency.svg", "bench.md", "bench.predicted.svg"]
        assert "![" in report.read_text()
    assert report.exists()


def test_bench_keeps_the_rows_of_a_part(capsys):
    code, said = bench(capsys, "--shard", "1/2", "--formulations", "folded", "--only")
    assert code == 0
    assert "join the parts with merge" in said.err


def test_a_prompt_faster_than_the_machine_can_reckon_is_suspect(monkeypatch):
    # 4 heads, 256 * 257 / 2 pairs of query and key, 2 x (32 + 32) FLOPs each
    point = at(256, phase="prefill", formulations=("sdpa",))
    assert point_module.prompt_flops(point) == 4 * 256 * 257 / 2 * 2 * 64
    machine = point_module.machine("cpu")
    slow = replace(machine, ceilings=replace(machine.ceilings, flops_per_s={"fp32": 1.0}))
    (found,) = point_module.rows_of(point, slow)
    assert found.status == "suspect"
    assert "FLOP/s are above the device limit" in found.flags[0]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"context": 0}, "context '0' must be above zero"),
        ({"batch": 0}, "batch 0 must be a whole number"),
        ({"kv_dtype": "x"}, "unknown kv-dtype 'x'"),
        ({"budget_s": 0}, "budget_s 0 must be above zero"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
    ],
)
def test_measure_refuses_what_cannot_be(asked, says):
    with pytest.raises(UsageError, match=says):
        measure([SMALL], **asked)


@pytest.mark.parametrize("command", ["bench", "calibrate"])
def test_without_torch_it_says_how_to_install_it(capsys, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main([command, *(ARGS if command == "bench" else [])]) == 3
    assert 'pip install "mha-configurator[bench]"' in capsys.readouterr().err


def test_heads_that_cannot_be_grouped_are_refused(capsys):
    assert main(["bench", "--d-model", "256", "--n-heads", "8", "--n-kv-heads", "3"]) == 2
    assert "n-heads 8 is not a multiple of n-kv-heads 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--formulations", "folded,nope"), 2, "unknown formulation 'nope'"),
        (("--formulations", "absorbed"), 2, "unknown formulation 'absorbed'"),
        (("--formulations", "folded", "--phase", "prefill"), 2, "unknown formulation 'folded'"),
        (("--device", "tpu"), 2, "unknown device 'tpu'"),
        (("--device", "cuda:99"), 3, "--device cuda:99: this machine has "),
    ],
)
def test_a_form_or_device_that_is_not_there_is_named(capsys, more, code, said):
    assert main(["bench", *ARGS, "--only", *more]) == code
    assert said in capsys.readouterr().err


def test_calibrate_names_a_device_that_is_not_there(capsys):
    assert main(["calibrate", "--device", "tpu"]) == 2
    assert "unknown device 'tpu'" in capsys.readouterr().err


def test_the_command_repeats_what_was_asked(capsys):
    _, said = bench(capsys, "--only", "--phase", "decode", "--formulations", "folded",
                    "--budget", "9s", "--format", "json")  # fmt: skip
    command = json.loads(said.out)["command"]
    assert command.endswith("--phase decode --formulations folded --device cpu --only --budget 9s")


def test_a_question_without_a_geometry_is_refused(capsys):
    assert main(["bench", "--context", "1k"]) == 2
    assert "no geometry" in capsys.readouterr().err


def test_bench_of_a_budget_measures_the_recommendation(capsys, monkeypatch, faked):
    code = main(["bench", "--params", "350M", "--context", "1k", "--format", "json",
                 "--device", "cpu"])  # fmt: skip
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["command"].endswith("--params 350000000 --device cpu")
    assert len({r["case"] for r in found["rows"]}) > 2
