"""Pictures: drawn from rows, the same bytes each time, and nothing drawn from nothing."""

from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET

import pytest

from configurator.core.errors import MissingExtra, UsageError
from configurator.render.plots import latency_vs_context, predicted_vs_measured

pytest.importorskip("matplotlib")


def row(name="GQA 32x128 kv8", context=1024, factor=1.0, **changes):
    base = {
        "case": f"{name}, context {context:,}, batch 1, bf16", "phase": "decode",
        "projection": name.split()[0], "status": "ok", "context": context,
        "predicted_s": context * 1e-7, "measured_s": context * 1.1e-7 * factor,
    }  # fmt: skip
    return base | changes


ROWS = [
    row(name, context, factor)
    for name in ("MHA 32x128", "GQA 32x128 kv8", "GQA 32x128 kv4", "MLA 32h r512+64")
    for context in (1024, 4096)
    for factor in (1.0, 3.0)
]


@pytest.mark.parametrize("draw", [predicted_vs_measured, latency_vs_context])
def test_a_picture_is_svg_and_the_same_each_time(draw):
    first = draw(ROWS, "A title")
    assert first == draw(ROWS, "A title")
    assert ET.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
    assert "A title" in first
    assert "<dc:date>" not in first
    assert not any(line.endswith(" ") for line in first.splitlines())


def test_every_geometry_is_named_once():
    text = latency_vs_context(ROWS)
    for name in ("MHA 32x128", "GQA 32x128 kv8", "GQA 32x128 kv4", "MLA 32h r512+64"):
        assert text.count(f">{name}, batch 1, bf16<") == 1
    assert ">4,096<" in text


def test_only_the_fastest_formulation_is_drawn():
    fast = predicted_vs_measured([row(), row(context=4096)])
    assert fast == predicted_vs_measured([row(factor=9.0), row(), row(context=4096)])


@pytest.mark.parametrize(
    ("draw", "rows"),
    [
        (predicted_vs_measured, []),
        (predicted_vs_measured, [row(predicted_s=None)]),
        (predicted_vs_measured, [row(status="suspect")]),
        (latency_vs_context, [row(phase="prefill")]),
        (latency_vs_context, [row(status="out of memory", measured_s=None)]),
    ],
)
def test_nothing_is_drawn_from_nothing(draw, rows):
    with pytest.raises(UsageError, match="nothing to draw"):
        draw(rows)


def test_without_matplotlib_it_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"mha-configurator\[plots\]"):
        predicted_vs_measured(ROWS)
