"""Sweeps: every point is what ``recommend`` answers, in seconds for a thousand of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from configurator import Request, UsageError, recommend
from configurator.cli import main
from configurator.render.markdown import to_markdown
from configurator.render.regimes import document, regimes_svg
from configurator.sweep import KINDS, parse_axis, sweep

BASE = {"params": "7B", "target": "rtx-4090", "context": "8k"}


@pytest.fixture(scope="module")
def contexts():
    return sweep(Request(**BASE), ["context=4k..1M"])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("context=4k,8k", (4096, 8192)),
        ("context=1k..2k", (1024, 1280, 1536, 1792, 2048)),
        ("context = 1k..4k:3", (1024, 2048, 4096)),
        ("batch=1..4", (1, 2, 3, 4)),
        ("params=1B,7B", (10**9, 7 * 10**9)),
        ("target=rtx-4090, h100-sxm", ("rtx-4090", "h100-sxm")),
    ],
)
def test_axes_are_read(text, values):
    assert parse_axis(text).values == values


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("context", "context=4k..1M"),
        ("depth=1..2", "context, batch, params, target"),
        ("context=8k..4k", "smaller end first"),
        ("context=1k..2k:1", "from 2 to"),
        ("batch=0..4", "whole number from 1"),
        ("target=a..b", "list, not a range"),
    ],
)
def test_a_wrong_axis_is_one_clear_line(text, says):
    with pytest.raises(UsageError, match=says.replace("..", r"\.\.")) as error:
        parse_axis(text)
    assert "\n" not in str(error.value)


def test_points_are_what_recommend_answers(contexts):
    rows = {r["context"]: r for r in contexts.rows}
    assert len(rows) == 33
    for tokens in (4096, 65536, 131_072, 262_144, 1 << 20):
        report = recommend(Request(**{**BASE, "context": tokens})).report
        r, row = report.recommendation, rows[tokens]
        kind = f"GQA-{r.n_kv_heads}" if r.projection == "GQA" else r.projection
        assert row["answer"] == kind
        assert row["cache_bytes"] == report.cache.bytes_total
        assert row["decode_s"] == pytest.approx(report.latency.decode_s)
        assert (row["status"] == "ok") == report.fits


def test_columns_of_points_equal_points_one_by_one():
    both = sweep(Request(**BASE), ["context=8k,100k", "batch=1,8"])
    for row in both.rows:
        alone = sweep(
            Request(**BASE), [f"context={row['context']}", f"batch={row['batch']}"]
        ).rows  # fmt: skip
        assert alone == (row,)


def test_regimes_cover_the_axis_in_order(contexts):
    regimes = contexts.regimes
    assert regimes[0]["from"] == 4096
    assert regimes[-1]["to"] == 1 << 20
    assert sum(r["points"] for r in regimes) == 33
    assert all(a["to"] < b["from"] for a, b in pairwise(regimes))
    # 24 GiB: 8 KV heads while they fit, then fewer, then latents, then nothing.
    answers = [r["answer"] for r in regimes]
    assert answers[:4] == ["GQA-8", "GQA-4", "GQA-2", "MLA"]
    assert regimes[-1]["status"] == "out of memory"


def test_an_answer_outside_of_its_kinds_reach_has_another_head_width():
    """At 4 sequences heads of 64 win beyond 384k; what fits nowhere is nobody's answer."""
    found = sweep(Request(params="7B", target="h100-sxm"), ["context=4k..1M", "batch=4,16"])
    widths = {r["d_head"] for r in found.regimes if r["status"] == "ok"}
    assert widths == {64, 128}
    for row in found.rows:
        own = row["kinds"].get(row["answer"])
        if row["status"] == "ok" and row["d_head"] == 128 and own:
            assert own["fits"]
    text = to_markdown(document(found))
    assert "GQA-2 x 64" in text
    assert "| batch 16 | GQA-8 | 4k to 24k | nowhere | 4k to 24k |" in text


def test_kinds_stand_side_by_side_at_every_point(contexts):
    row = contexts.rows[0]
    kinds = row["kinds"]
    assert set(kinds) == set(KINDS)
    assert kinds["MHA"]["cache_bytes"] == 4 * kinds["GQA-8"]["cache_bytes"]
    assert row["fastest"] in kinds
    last = contexts.rows[-1]["kinds"]
    assert not last["MHA"]["fits"]


def test_an_impossible_point_is_a_row_with_its_reason():
    found = sweep(Request(**BASE), ["params=10M,1B"])
    assert [r["status"] for r in found.rows] == ["refused", "ok"]
    assert "--params" in found.rows[0]["reason"]
    assert "--params" in to_markdown(document(found))


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ("target=rtx-4090,rtx-4099", "unknown target 'rtx-4099'"),
        ("context=2147483649", "must be at most"),
    ],
)
def test_a_name_that_is_not_known_or_no_possible_point_is_an_error(axis, says):
    with pytest.raises(UsageError, match=says):
        sweep(Request(**BASE), [axis])


@pytest.mark.parametrize(("bandwidth", "tflops"), [("100GB/s", None), ("50MB/s", "0.5")])
def test_a_target_in_figures_is_the_same_at_every_point(bandwidth, tflops):
    figures = {"memory": "24GiB", "bandwidth": bandwidth, "tflops": tflops}
    request = Request(params="1B", context="8k", **figures)
    assert Request(**request.given()) == request
    (row,) = sweep(request, ["context=8k"]).rows
    report = recommend(request).report
    assert row["cache_bytes"] == report.cache.bytes_total
    assert row["decode_s"] == report.latency.decode_s


def test_an_axis_is_text():
    with pytest.raises(UsageError, match="sweep None is not an axis"):
        sweep(Request(**BASE), [None])


def test_needing_lighter_weights_is_a_status_of_its_own():
    """32B in 16 bits and 128k of 8 KV heads exceed 80 GB; in 8 bits both fit."""
    request = Request(params="32B", target="h100-sxm", d_model=5120, n_layers=64)
    row = sweep(request, ["context=128k"]).rows[0]
    assert (row["answer"], row["status"]) == ("GQA-8", "needs 8-bit weights")


def test_a_thousand_points_are_one_grid():
    """Not a test on time: all contexts of a budget go through the costs together."""
    found = sweep(Request(**BASE), ["context=4k..1M:1000"])
    assert len(found.rows) == 1000
    assert len(found.regimes) < 12


def test_targets_and_budgets_go_one_by_one():
    found = sweep(Request(**BASE), ["target=rtx-4090,8xh100-sxm", "context=1k,1M"])
    where = {(r["target"], r["context"]): r["status"] for r in found.rows}
    assert where["rtx-4090", 1024] == where["8xh100-sxm", 1 << 20] == "ok"
    assert where["rtx-4090", 1 << 20] == "out of memory"


def test_too_much_or_twice_is_refused():
    with pytest.raises(UsageError, match="20,000"):
        sweep(Request(**BASE), ["context=1k..1M:1000", "batch=1..1000:900"])
    with pytest.raises(UsageError, match="twice"):
        sweep(Request(**BASE), ["context=1k,2k", "context=4k"])


def test_parts_join_to_the_whole(tmp_path):
    axes = ["params=1B,3B,7B", "context=8k,32k"]
    rows = str(tmp_path / "rows.jsonl")
    first = sweep(Request(**BASE), axes, shard="1/2", resume=rows)
    assert (len(first.rows), first.asked) == (4, 6)
    assert sweep(Request(**BASE), axes, resume=rows).rows == sweep(Request(**BASE), axes).rows


def test_picture_is_stable_and_well_formed(contexts):
    pytest.importorskip("matplotlib")
    picture = regimes_svg(contexts)
    assert picture == regimes_svg(contexts)
    ET.fromstring(picture)
    for name in ("GQA-8", "MLA", "out of memory", "decode step"):
        assert name in picture
    two = regimes_svg(sweep(Request(**BASE), ["context=8k,128k,1M", "batch=1,4"]))
    assert "batch 4" in two


def test_document_shows_a_map_with_a_legend(contexts):
    text = to_markdown(document(contexts))
    assert "## Map" in text
    assert "L MLA" in text
    assert "--sweep context=4k..1M" in text
    assert "| 4k |" in text


def test_command_line(capsys, tmp_path):
    arguments = ["recommend", "--params", "7B", "--target", "rtx-4090"]
    assert main([*arguments, "--sweep", "context=64k,1M", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["status"] for r in found["rows"]] == ["ok", "out of memory"]
    file = tmp_path / "map.md"
    assert main([*arguments, "--sweep", "context=4k..64k", "--output", str(file)]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"map.md", "map.svg"}
    assert main(["recommend", "--sweep", "params=1B,3B"]) == 0  # the budget is the axis
    capsys.readouterr()
    assert main([*arguments, "--shard", "1/2"]) == 2
    assert "--sweep" in capsys.readouterr().err
    assert main([*arguments, "--sweep", "context=big"]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--params 7B --sweep context=4k,8k --verify", "--verify does not go with --sweep"),
        ("--params 7B --sweep context=4k,8k --top 3", "--top does not go with --sweep"),
        ("--from qwen3-8b --verify", "--verify does not go with --from"),
    ],
)
def test_what_a_sweep_or_a_conversion_does_not_honour_is_refused(words, says, capsys):
    assert main(["recommend", *words.split()]) == 2
    assert says in capsys.readouterr().err
