"""What was asked and is not honoured is a warning; what cannot be is one line that says why."""

from __future__ import annotations

import pytest

from configurator import GeometryRequest, Request, UsageError, check, compare, recommend


def warned(**request):
    return " | ".join(recommend(Request(**request)).warnings)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"arch": "encoder", "kv_dtype": "fp8"}, "kv-dtype fp8 was not used"),
        ({"arch": "encoder", "page_size": 16}, "page-size 16 was not used"),
        ({"arch": "encoder", "window": 4096}, "window is for decoders"),
        ({"arch": "encoder", "tie_embeddings": False}, "--untie-embeddings was not used"),
        ({"arch": "encoder", "projection": "mla,gqa"}, "MLA is for decoders"),
        ({"window": "64k", "context": "8k"}, "window of 65,536 tokens is not below"),
        ({"window": 1024, "full_every": 1}, "no window is used"),
        ({"window": 1024, "full_every": 200}, "no layer keeps the whole context"),
        ({"d_head": "64,96", "d_model": 4096}, "d-head 96 does not divide d-model 4096"),
    ],
)
def test_what_is_not_honoured_is_a_warning(request_, says):
    assert says in warned(params="7B", **request_)


def test_what_is_honoured_is_no_warning():
    assert warned(params="7B", context="8k", window=4096, full_every=6, d_head="64,128") == ""
    assert warned(params="300M", arch="encoder") == ""  # BERT-large: 16 heads of 64 at 1,024


def test_a_geometry_warns_too():
    common = {"d_model": 4096, "n_layers": 32, "n_heads": 32, "d_ff": 11008, "vocab_size": 32000}
    latent = check(GeometryRequest(**common, kv_lora_rank=512, n_kv_heads=8, q_lora_rank=0))
    assert latent.warnings == (
        "taken as usual: qk-nope-head-dim 128, qk-rope-head-dim 64, v-head-dim 128",
        "n-kv-heads 8 was not used: MLA's heads share one latent",
    )
    some = check(GeometryRequest(**common, kv_lora_rank=512, d_head=64, v_head_dim=64))
    assert some.warnings == ("taken as usual: qk-rope-head-dim 32",)
    both = check(GeometryRequest(**common, kv_lora_rank=512, d_head=64, qk_nope_head_dim=128))
    assert "d-head 64 was not used: qk-nope-head-dim 128" in " ".join(both.warnings)
    encoder = check(GeometryRequest(**common, arch="encoder", window=4096))
    assert encoder.warnings == ("the window is for decoders and was not used",)


def test_a_budget_of_a_billion_that_comes_out_below_it_gives_no_mla():
    """1B at 20 layers of 2,048 has 999,911,424 parameters with MLA: the guardrail holds."""
    advice = recommend(Request(params="1B", projection="mla"))
    everything = [advice.recommendation, *(o.recommendation for o in advice.alternatives)]
    assert all(r.projection != "MLA" or r.params_total >= 10**9 for r in everything)
    assert "999,911,424 parameters, below 1,000,000,000" in " ".join(advice.warnings)
    tried = recommend(Request(params="1B", projection="mla", benchmarking=True))
    assert tried.recommendation.projection == "MLA"
    assert recommend(Request(params="1.02B", projection="mla")).recommendation.projection == "MLA"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"arch": "encoder", "projection": "mla"}, "mla is for decoders"),
        ({"tensor_parallel": 8}, "needs a target of 8 devices"),
        ({"active_params": "1M"}, "active-params 1,000,000 leave no room"),
    ],
)
def test_a_refusal_names_the_cause(request_, says):
    with pytest.raises(UsageError, match=says):
        recommend(Request(params="7B", **request_))


def test_compare_shows_what_was_asked_for():
    common = {"d_model": 4096, "n_layers": 32, "n_heads": 32}
    latent = compare(GeometryRequest(**common, kv_lora_rank=256)).rows[-1].recommendation
    assert (latent.projection, latent.kv_lora_rank) == ("MLA", 256)
    kinds = {
        o.recommendation.projection
        for o in compare(Request(params="7B", projection="mha,gqa")).rows
    }
    assert kinds == {"MHA", "GQA"}


@pytest.mark.parametrize("ask", [recommend, check, compare])
@pytest.mark.parametrize("wrong", ["7B", None, {"params": "7B"}])
def test_something_else_than_a_request_is_a_users_mistake(ask, wrong):
    with pytest.raises(UsageError, match="request is a"):
        ask(wrong)


def test_where_no_single_remedy_helps_the_devices_needed_are_said():
    """400B in bf16 is 745 GiB of weights; an RTX 4090 has some 21 GiB beside its reserve."""
    advice = recommend(Request(params="400B", context="128k", target="rtx-4090"))
    assert not advice.fits
    (only,) = advice.remedies
    m = advice.memory
    least = -(-(m.weights_bytes + m.cache_bytes) // (m.capacity_bytes - m.reserve_bytes))
    assert f"{least} of them at least" in only


def test_the_runner_up_is_the_second_of_the_order():
    """125M at 2k: 10 heads divide by 5, and 5 KV heads come before MHA in the order."""
    advice = recommend(Request(params="125M", context="2k", target="rtx-3060"))
    (said,) = [w for w in advice.why if w.startswith("Margin")]
    assert "runner-up, GQA 10/5 x 64" in said
    assert "-0%" not in " ".join(recommend(Request(params="70B", target="8xh100-sxm")).why)


def test_parts_of_a_byte_are_cut():
    assert Request(params="7B", memory="25.2GiB").memory == 27_058_293_964
    with pytest.raises(UsageError, match="above zero"):
        Request(params="7B", memory="0.1B")


def test_what_was_asked_is_echoed_in_whole_numbers():
    text = recommend(
        Request(
            params="7B", d_model=4096, window="4k", full_every=6, memory="24GiB", bandwidth=1000
        )
    ).to_markdown()
    assert "d_model 4,096, window 4,096, full_every 6, memory 24 GiB (25,769,803,776 bytes)" in text
    assert "target custom device" in text
    assert "one layer in 6 keeps all" in text


def test_a_window_alone_is_in_every_layer():
    """As in Mistral 7B v0.1; it was once taken as in none, without a word."""
    asked = {"params": "7B", "context": "32k", "target": "h100-sxm"}
    advice, full = (recommend(Request(**asked, **w)) for w in ({"window": 4096}, {}))
    assert advice.cache.bytes_total * 8 == full.cache.bytes_total
    assert (advice.recommendation.window, advice.recommendation.full_every) == (4096, 0)
    given = check(
        GeometryRequest(d_model=4096, n_heads=32, n_layers=32, context="32k", window=4096)
    )
    assert given.option.cache.bytes_total == 2 * 4096 * 4096 * 2 * 32
