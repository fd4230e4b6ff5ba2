"""The micro-benchmark's parts on small shapes: equal results, exact bytes, honest rows."""

# ruff: noqa: E402 - torch is imported only where it is installed
from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from configurator.bench import point as point_module
from configurator.bench import whole as whole_module
from configurator.bench.ceilings import Ceilings
from configurator.bench.formulations import Unsupported, formulations
from configurator.bench.formulations_mla import DECODE_MLA
from configurator.bench.machine import Machine, environment
from configurator.bench.memory import is_out_of_memory
from configurator.bench.point import OverBudget, cached_bytes, cost_s, measure_point, rows_of
from configurator.bench.points import Point, attention_from, attention_to, name_of, plan, spread
from configurator.bench.prefill import PREFILL, expanded
from configurator.bench.problem import make, slot_count
from configurator.bench.whole import check_cache
from configurator.core.dtypes import cache_type
from configurator.core.examples import example, example_device
from configurator.core.kinds.mla import Latent
from configurator.core.shapes import geometry

SHAPES = {
    "mha": geometry(d_model=64, n_heads=4),
    "gqa": geometry(d_model=64, n_heads=4, n_kv_heads=2),
    "mqa": geometry(d_model=64, n_heads=4, n_kv_heads=1),
    "wide": geometry(d_model=64, n_heads=4, n_kv_heads=2, d_head=24, v_head_dim=16),
    "mla": geometry(
        d_model=64, n_heads=4, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8,
        v_head_dim=16,
    ),
}  # fmt: skip
CLOSE = {"fp32": 1e-4, "bf16": 4e-2, "fp16": 2e-2, "fp8": 4e-2}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for one another are slow on a busy machine
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def here():
    """A machine without ceilings of its own: nothing here is measured."""
    ceilings = Ceilings(
        read_bytes_per_s=2e10, copy_bytes_per_s=1e10, flops_per_s={"fp32": 1e11, "bf16": 1e12},
        overhead_s=1e-6, reads={}, working_set_bytes=1 << 30,
    )  # fmt: skip
    return Machine(
        torch_device="cpu", target=example_device(name="host"), ceilings=ceilings, cache_bytes=0
    )


def at(shape="gqa", **changes):
    return Point(
        **{"attention": attention_to(SHAPES[shape]), "context": 512, "limit_s": 0.02} | changes
    )


# --- formulations --------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16", "fp8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_formulation_gives_the_reference(shape, dtype, batch):
    p = make(SHAPES[shape], cache_type(dtype), batch=batch, context=1024)
    wanted = p.reference()
    ran = []
    for form in formulations(p.latent):
        if form.compiles:
            continue
        try:
            found = p.value_space(form.build(p)(0))
        except Unsupported:
            continue
        assert found.shape == wanted.shape
        assert (found - wanted).norm() / wanted.norm() < CLOSE[dtype], form.name
        ran.append(form.name)
    assert len(ran) >= (5 if p.latent else 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_prompt_formulation_gives_the_reference(shape):
    attention = expanded(SHAPES[shape])
    p = make(attention, cache_type("fp32"), batch=2, context=48, queries=48, causal=True)
    wanted, ran = p.reference(), []
    for form in PREFILL:
        try:
            found = form.build(p)(0)
        except Unsupported:
            continue
        assert (found - wanted).norm() / wanted.norm() < 1e-4, form.name
        ran.append(form.name)
    assert {"sdpa", "products"} <= set(ran)
    tail = p.reference(5)
    torch.testing.assert_close(tail, wanted[:, :, -5:])


def test_absorbed_is_timed_on_the_latent_and_expanded_on_the_same_numbers():
    names = [form.name for form in DECODE_MLA]
    assert {"absorbed", "absorbed_fused", "expanded"} <= set(names)
    p = make(SHAPES["mla"], cache_type("fp32"), batch=1, context=1024)
    assert p.slots[0][0].shape == (1, 1, 1024, 40)  # rank 32 + rotary 8
    assert p.cache_bytes == 1024 * 40 * 4


def test_copies_rotate_and_only_the_first_is_looked_at():
    p = make(SHAPES["gqa"], cache_type("fp32"), batch=1, context=512, cache_bytes=1 << 20)
    # one cache: 512 tokens x 2 heads x (16 + 16) values x 4 bytes = 131,072; 1.25 MiB holds 10
    assert p.cache_bytes == 131_072
    assert len(p.slots) == 10
    assert len({slot[0].data_ptr() for slot in p.slots}) == 10
    assert p.working_set_bytes == 1_310_720


@pytest.mark.parametrize(
    ("slot", "cache", "room", "count"),
    [
        (1 << 20, 8 << 20, 1 << 30, 10),
        (1 << 20, 0, 1 << 30, 2),
        (1 << 20, 8 << 20, 3 << 20, 3),
        (1 << 20, 8 << 20, 0, 1),
        (1, 1 << 30, 1 << 40, 4096),
    ],
)
def test_slot_count(slot, cache, room, count):
    assert slot_count(slot, cache, room) == count


def test_types_without_arithmetic_are_refused():
    with pytest.raises(ValueError, match="no arithmetic for a q8_0 cache"):
        make(SHAPES["gqa"], cache_type("q8_0"), batch=1, context=4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")
def test_compiled_formulations_give_the_reference():
    p = make(SHAPES["gqa"], cache_type("fp32"), batch=1, context=1024)
    for form in formulations(False):
        if form.name == "compiled":
            found = p.value_space(form.build(p)(0))
            assert (found - p.reference()).norm() / p.reference().norm() < 1e-4


# --- rows ----------------------------------------------------------------------------------


def test_rows_have_exact_bytes_and_name_the_path(here):
    rows = {r.formulation: r for r in rows_of(at(), here)}
    assert {"sdpa", "folded", "products"} <= set(rows)
    for row in rows.values():
        # 512 tokens x 2 heads x 32 values x 2 bytes
        assert row.cache_bytes_measured == row.cache_bytes_predicted == 65_536
        assert row.status in ("ok", "disturbed", "suspect")
        assert row.measured_s > 0
        assert row.predicted_s > 0
    assert rows["folded"].path == "fused (flash)"
    assert rows["products"].path == "products (bmm)"
    assert any("folding the group" in flag for flag in rows["sdpa"].flags)


def test_a_grouped_call_on_the_slow_path_is_never_silent(here):
    rows = {r.formulation: r for r in rows_of(at("mla"), here)}
    slow = rows["absorbed_sdpa"]
    assert slow.path == "math, K and V copied to every head"
    assert "slow path: torch fell back to its math kernel" in slow.flags
    assert rows["absorbed_fused"].path == "fused (flash)"


def test_only_the_formulations_asked_for(here):
    assert [r.formulation for r in rows_of(at(formulations=("folded",)), here)] == ["folded"]


def test_a_window_limits_what_is_cached(here):
    point = at(window=128, formulations=("folded",))
    assert [r.cache_bytes_measured for r in rows_of(point, here)] == [128 * 2 * 32 * 2]
    assert "window 128" in point.case


@pytest.mark.parametrize("dtype", ["q8_0", "q4_0", "nvfp4", "int4", "k=q8_0,v=q4_0"])
def test_block_types_have_their_bytes_checked(here, dtype):
    (row,) = rows_of(at(kv_dtype=dtype), here)
    assert row.status == "bytes only"
    assert row.cache_bytes_measured == row.cache_bytes_predicted


def test_a_wrong_prediction_of_bytes_is_a_row_and_ends_the_point(here, monkeypatch):
    monkeypatch.setattr(Point, "cache_bytes", 65_537)
    (row,) = rows_of(at(), here)
    assert row.status == "bytes differ"
    assert (row.cache_bytes_predicted, row.cache_bytes_measured) == (65_537, 65_536)


def test_a_wrong_result_is_not_timed(here, monkeypatch):
    wrong = formulations(False)[0]

    def build(p):
        call = wrong.build(p)
        return lambda i: call(i) * 1.5

    monkeypatch.setattr(point_module, "formulations", lambda latent: (replace(wrong, build=build),))
    (row,) = rows_of(at(), here)
    assert row.status.startswith("wrong result: 5.0e-01")
    assert row.measured_s is None


def test_memory_is_checked_before_it_is_taken(here):
    (row,) = rows_of(at(context=1 << 30), here, free=1 << 30)
    assert row.status == "out of memory: needs 137,438,953,472 bytes, 1,073,741,824 are free"
    assert row.cache_bytes_measured is None


def test_a_form_that_needs_too_much_is_a_row_and_the_others_go_on(here, monkeypatch):
    monkeypatch.setattr(point_module, "free_bytes", lambda device: 100_000)
    rows = {r.formulation: r.status for r in rows_of(at(), here, free=1 << 30)}
    assert rows["repeated"].startswith("out of memory: needs 131,072 bytes")
    assert rows["folded"] in ("ok", "disturbed", "suspect")


def test_an_allocator_that_refuses_is_a_row(here, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1")

    monkeypatch.setattr(point_module, "make", refuse)
    (row,) = rows_of(at(), here)
    assert row.status == "out of memory: the allocator refused"


def test_other_errors_are_not_taken_for_memory():
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))


def test_prefill_rows(here):
    rows = list(rows_of(at("mla", phase="prefill", context=64), here))
    assert {r.formulation for r in rows} == {"sdpa", "padded", "products"}
    paths = {r.formulation: r.path for r in rows}
    assert paths["sdpa"] == "math"
    assert paths["padded"] == "fused (flash)"
    # a prompt fills the latent cache: 64 tokens x 40 values x 2 bytes
    assert {r.cache_bytes_measured for r in rows} == {5120}


def test_measure_point_takes_and_gives_plain_values(here, monkeypatch):
    monkeypatch.setattr(point_module, "machine", lambda device: here)
    found = measure_point(at(formulations=("folded",)).item())
    assert found["rows"][0]["formulation"] == "folded"
    assert found["environment"]["torch"] == torch.__version__
    assert found["environment"]["threads"] == torch.get_num_threads()


def test_a_point_too_long_for_what_is_left_is_not_begun(here, monkeypatch):
    monkeypatch.setattr(point_module, "machine", lambda device: here)
    token = point_module.DEADLINE.set(0.0)
    try:
        with pytest.raises(OverBudget, match="0 s are left"):
            measure_point(at().item())
    finally:
        point_module.DEADLINE.reset(token)


def test_a_larger_point_is_expected_to_take_longer(here):
    assert cost_s(at(context=1 << 20), here) > cost_s(at(), here)
    assert cost_s(at(compiled=True), here) > 30


def test_the_environment_names_what_a_reader_needs():
    found = environment("cpu")
    assert {"cpu", "cores", "threads", "torch", "python", "load", "caches_bytes"} <= set(found)


# --- points --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_points_survive_the_way_to_a_worker(shape):
    point = at(shape, window=64, formulations=("sdpa",), compiled=True)
    assert Point.from_item(point.item()) == point
    assert attention_from(point.attention) == SHAPES[shape]


def test_names():
    assert name_of(SHAPES["wide"]) == "GQA 4x24/16 kv2"
    assert name_of(SHAPES["mla"]) == "MLA 4h r32+8"
    assert name_of(geometry(d_model=64, n_heads=4)) == "MHA 4x16"


def test_the_most_telling_points_come_first():
    points = [
        at(shape, context=c, phase=phase, compiled=compiled)
        for c in (256, 1024, 4096)
        for phase in ("prefill", "decode")
        for shape in ("gqa", "mha")
        for compiled in ((False, True) if phase == "decode" else (False,))
    ]
    order = plan(points)
    assert len(order) == len(points)
    first = [(p.context, p.phase) for p in order[:4]]
    assert first == [(4096, "decode")] * 2 + [(4096, "prefill")] * 2
    assert order[0].attention == attention_to(SHAPES["gqa"])
    assert order[4].context == 256
    assert all(p.compiled for p in order[-6:])


@pytest.mark.parametrize("count", range(12))
def test_spread_visits_every_place_once(count):
    assert sorted(spread(count)) == list(range(count))


# --- the whole cache -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"window": 128, "full_every": 4},
        {"kv_lora_rank": 64, "n_kv_heads": 0},
        {"arch": "encoder-decoder", "source_len": 100},
        {"kv_dtype": "q8_0", "batch": 3, "page_size": 16},
    ],
)
def test_the_whole_cache_is_exact(changes):
    case = example(d_model=256, n_heads=8, **{"n_kv_heads": 2, "d_head": 32} | changes,
                   context=300, n_layers=8)  # fmt: skip
    found = check_cache(case)
    assert found.measured_bytes == found.predicted_bytes > 0
    assert found.exact
    assert found.status == "exact"


def test_a_cache_that_cannot_be_held_is_said():
    found = check_cache(example(context=1 << 20), free=1 << 20)
    assert found.measured_bytes is None
    assert found.status.startswith("out of memory: one layer needs 4,294,967,296 bytes")
    assert found.exact  # nothing that was measured differs


def test_a_cache_that_the_allocator_refuses_is_said(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(whole_module, "allocate_group", refuse)
    found = check_cache(example(context=1024))
    assert (found.measured_bytes, found.groups) == (None, ())
    assert found.status.startswith("out of memory: the allocator refused")


def test_cached_bytes_of_a_latent():
    latent = Latent(d_model=64, n_heads=4, kv_lora_rank=32, qk_rope_head_dim=8)
    point = Point(attention=attention_to(latent), context=10, kv_dtype="fp8", batch=3)
    assert cached_bytes(point) == 3 * 10 * 40
