"""What would change the answer: a flip that is claimed is one, and where none is, none is found."""

from __future__ import annotations

import pytest

from configurator import Request, recommend

SMALL = {"params": "7B", "context": "32k", "target": "h100-sxm", "d_model": 4096, "n_layers": 32}
CARD = {"params": "7B", "context": "64k", "target": "rtx-4090", "d_model": 4096, "n_layers": 32}
NODE = {"params": "70B", "context": "32k", "target": "8xh100-sxm", "d_model": 8192, "n_layers": 80}


def words(report, width=128):
    """The answer as a sensitivity names it: its head width where that is not ``width``."""
    r = report.recommendation
    name = f"GQA with {r.n_kv_heads} KV heads" if r.projection == "GQA" else r.projection
    if r.d_head != width:
        name += f" of {r.d_head}" if r.projection == "GQA" else f" with heads of {r.d_head}"
    return name if report.fits else f"{name}, not as asked"


def ask(**request):
    return recommend(Request(**request)).report


def told(report):
    return {(s.input, s.direction): s for s in report.sensitivity}


@pytest.mark.parametrize("question", [SMALL, CARD], ids=["h100", "rtx-4090"])
@pytest.mark.parametrize("name", ["context", "batch"])
def test_a_claimed_flip_is_one_and_is_the_nearest(question, name):
    report = ask(**question)
    here = words(report)
    found = [s for s in report.sensitivity if s.input == name and s.flips_at]
    assert found
    for s in found:
        assert s.factor == pytest.approx(s.flips_at / s.asked)
        assert words(ask(**{**question, name: s.flips_at})).startswith(s.to.split(",")[0])
        assert words(ask(**{**question, name: s.flips_at})) != here
        # Found to 1 %, or to one sequence: just before it the answer is still the same.
        step = max(1, round(0.011 * s.flips_at)) * (1 if s.direction == "up" else -1)
        assert words(ask(**{**question, name: s.flips_at - step})) == here


def test_flips_of_memory():
    """A card of more or less memory, all else equal."""
    report = ask(**CARD)
    for s in (s for s in report.sensitivity if s.input == "memory" and s.flips_at):
        other = ask(**{**CARD, "memory": s.flips_at})
        assert words(other).startswith(s.to.split(",")[0])
        assert words(other) != words(report)


def test_a_cache_that_grows_needs_fewer_heads_in_order():
    """7B at 64k on 24 GiB has 4 KV heads; a longer context 2, a shorter one 8."""
    found = told(ask(**CARD))
    assert words(ask(**CARD)) == "GQA with 4 KV heads"
    assert found["context", "up"].to == "GQA with 2 KV heads"
    assert found["context", "down"].to == "GQA with 8 KV heads"
    assert found["memory", "up"].to == "GQA with 8 KV heads"


def test_context_and_memory_flip_where_the_arithmetic_says():
    """8 KV heads of 128 in 32 layers keep 128 KiB a token: what is left of the memory over that."""
    report = ask(**SMALL)
    m = report.memory
    left = m.capacity_bytes - m.weights_bytes - m.reserve_bytes
    flip = told(report)["context", "up"]
    assert flip.to == "GQA with 4 KV heads"
    assert flip.flips_at == pytest.approx(left / (128 * 1024), rel=0.02)


def test_where_the_answer_is_said_to_stay_it_does():
    found = told(ask(**NODE))
    s = found["context", "down"]
    assert s.flips_at is None
    assert "the answer stays" in s.message
    for factor in (2, 8, 64):
        assert words(ask(**{**NODE, "context": 32_768 // factor})) == words(ask(**NODE))


def test_a_flip_of_the_head_width_is_found_and_what_lies_between_is_not_skipped():
    """70B on 8 devices: 11 sequences fit, 12 do not as asked, 16 do with heads of 64.

    With heads of one width counted as heads of the other, 12 to 15 were said to stay.
    """
    node = {"params": "70B", "context": "128k", "target": "8xh100-sxm"}
    report = ask(**node)
    flip = told(report)["batch", "up"]
    assert report.cache.max_batch == 11
    assert flip.flips_at == 12
    assert "weights in 8 bits" in flip.to
    assert not ask(**node, batch=12).fits
    wide = told(report)["context", "up"]
    assert wide.flips_at == pytest.approx(report.cache.max_context, rel=0.01)
    assert "of 64" in words(ask(**{**node, "context": 2**21}))


def test_tensor_parallelism_is_asked_only_of_several_devices():
    assert ("tensor_parallel", "down") in told(ask(**NODE))
    assert not any(s.input == "tensor_parallel" for s in ask(**SMALL).sensitivity)
    flip = told(ask(**NODE))["tensor_parallel", "down"]
    other = ask(**{**NODE, "tensor_parallel": flip.flips_at})
    assert words(other).startswith(flip.to.split(",")[0])


def test_without_a_target_only_the_work_is_varied():
    found = ask(params="1B", context="8k").sensitivity
    assert {s.input for s in found} == {"context", "batch"}


def test_mla_flips_with_the_context_it_needs():
    """A mixture over nodes takes MLA from 8k on (P1), so a shorter context flips it."""
    report = ask(
        params="671B", active_params="37B", d_model=7168, n_layers=61, context="128k",
        target="2x8xh200-sxm", tensor_parallel=1, allow_decoupled_heads=True,
    )  # fmt: skip
    flip = told(report)["context", "down"]
    assert (flip.flips_at, flip.to) == (8192, "GQA with 8 KV heads")


def test_two_depths_are_shown_with_their_latency():
    report = ask(params="7B", context="32k", target="h100-sxm")
    deeper = [o for o in report.alternatives if o.label.startswith("deeper")]
    assert len(deeper) == 1
    assert deeper[0].recommendation.n_layers > report.recommendation.n_layers
    assert deeper[0].latency.decode_s > 0
    assert f"{deeper[0].recommendation.n_layers} layers" in deeper[0].why_not
    fixed = ask(params="7B", context="32k", target="h100-sxm", n_layers=32, d_model=4096)
    assert not any(o.label.startswith("deeper") for o in fixed.alternatives)


def test_a_restricted_question_has_the_room_of_its_answer():
    """MQA's weights are 96 MiB more than GQA's here, and the room they leave holds for both.

    At 65,767 tokens 8 KV heads would fit beside GQA's own weights alone: the answer is 4, and 8
    is what fewer tokens give.
    """
    report = ask(**CARD | {"context": 65_767, "projection": ("gqa",)})
    assert words(report) == "GQA with 4 KV heads"
    flip = told(report)["context", "down"]
    assert flip.to == "GQA with 8 KV heads"
    assert flip.flips_at < 65_767
