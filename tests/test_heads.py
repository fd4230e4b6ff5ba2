"""Maps of heads: what is measured on them, any language, terminal and SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("torch")

from configurator.core.errors import UsageError
from configurator.probe import copy, induction, recall
from configurator.render.curves import Map, maps_svg
from configurator.render.terminal import to_text
from configurator.study.head_maps import CAUTION, HeadMap, _tokens, maps, measures
from configurator.study.maps_document import document, drawn, picture
from configurator.study.words import graphemes, pieces

SENTENCE = "the cat sat on the mat and the cat slept"


def measured(weights: list[list[float]], words: str = "a b a", **options: object) -> HeadMap:
    given = {"layer": 1, "head": 1, "causal": True, "words": words.split()} | options
    return measures(np.array(weights, float), **given)  # type: ignore[arg-type]


def test_the_table_ends_with_a_head_that_looks_evenly() -> None:
    found = maps("a b c d", seed=0)
    table = document(found).sections[0].table
    assert table is not None
    # Rows of 1, 2, 3, 4 visible pieces: first and itself (1 + 1/2 + 1/3 + 1/4) / 4 = 52 %.
    name, _, share, first, _, itself, *_ = table.rows[-1]
    assert (name, share, first, itself) == ("even", "100%", "52%", "52%")
    assert len(table.rows) == len(found.heads) + 1


def test_a_task_that_was_not_learned_is_said() -> None:
    assert "which they did not learn" in maps("a b a b", trained="induction", steps=1).weights


# Measures, by hand


def test_a_head_on_the_previous_piece() -> None:
    found = measured([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert found.entropy_bits == 0
    assert found.to_previous == 1
    assert found.distance == pytest.approx((0 + 1 + 1) / 3)
    assert found.to_first == pytest.approx(2 / 3)
    assert found.to_self == pytest.approx(1 / 3)
    # Row 3 repeats the first piece, which piece 2 followed: all of its weight is there.
    assert found.to_follower == 1


def test_a_uniform_head_has_all_the_entropy_it_can() -> None:
    found = measured([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], words="a b c")
    assert found.entropy_bits == pytest.approx((0 + 1 + np.log2(3)) / 3)
    assert found.entropy_share == pytest.approx(1)
    assert found.to_follower is None
    everywhere = measured([[0.5, 0.5], [0.5, 0.5]], words="a b", causal=False)
    assert everywhere.entropy_share == pytest.approx(1)


def test_cross_attention_has_no_distance() -> None:
    found = measured([[0.25, 0.75], [1, 0], [0, 1]], causal=False, cross=True)
    assert (found.distance, found.to_self, found.to_previous) == (None, None, None)
    assert found.to_first == pytest.approx(1.25 / 3)


# Maps


def test_rows_are_distributions_and_causal_rows_do_not_look_ahead() -> None:
    found = maps(SENTENCE)
    assert len(found.heads) == 4
    for head in found.heads:
        weights = np.array(head.weights)
        assert weights.shape == (10, 10)
        assert np.allclose(weights.sum(axis=1), 1)
        assert not np.triu(weights, 1).any()
    open_ended = np.array(maps(SENTENCE, causal=False).heads[0].weights)
    assert np.triu(open_ended, 1).any()


def test_heads_differ_even_at_random_and_a_seed_repeats_them() -> None:
    found, again, other = maps(SENTENCE), maps(SENTENCE), maps(SENTENCE, seed=1)
    assert found == again
    assert found.heads != other.heads
    first, second = (np.array(head.weights) for head in found.heads[:2])
    assert np.abs(first - second).max() > 0.2


def test_cross_attention_looks_from_text_to_source() -> None:
    found = maps("le chat dort", source="the cat is asleep now", n_heads=2)
    assert np.array(found.heads[0].weights).shape == (3, 5)
    assert not found.causal
    text = to_text(document(found))
    assert "keys: 1 the, 2 cat, 3 is, 4 asleep, 5 now" in text


def test_the_same_word_gets_the_same_vector_in_text_and_source() -> None:
    # Without positions a query for the same word must look at the source in the same way.
    weights = np.array(maps("cat dog cat", source="the cat").heads[0].weights)
    assert np.array_equal(weights[0], weights[2])


def test_a_trained_model_is_read_layer_by_layer() -> None:
    found = maps("a b c a b c", trained="copy", steps=2, n_heads=2)
    assert [(h.layer, h.head) for h in found.heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert "trained on copy" in found.weights
    assert "after 2 steps" in found.weights


def test_trained_on_induction_one_layer_looks_back_and_the_next_finds_the_follower() -> None:
    # Olsson et al. 2022: a previous-token head, and above it a head that copies what followed.
    found = maps("one two three four five six one two three four five six", trained="induction")
    back = {h.head: h.to_previous for h in found.heads if h.layer == 1}
    follow = {h.head: h.to_follower for h in found.heads if h.layer == 2}
    assert max(filter(None, back.values())) > 0.5
    assert max(filter(None, follow.values())) > 0.6
    assert all((h.to_follower or 0) < 0.1 for h in found.heads if h.layer == 1)


def test_words_become_tokens_that_the_task_has_at_those_places() -> None:
    # A row of recall is keys (1 to 31) and values (32 to 63) in turn, then keys again.
    tokens = _tokens(recall.TASK, ["a", "one", "b", "two", "c", "three", "b", "a"])
    assert all(1 <= token < 32 for token in tokens[0:6:2])
    assert all(32 <= token < 64 for token in tokens[1:6:2])
    assert tokens[6:] == [tokens[2], tokens[0]]
    assert 0 not in _tokens(copy.TASK, [str(i) for i in range(63)])  # the separator
    assert sorted(_tokens(induction.TASK, [str(i) for i in range(64)])) == list(range(64))
    with pytest.raises(UsageError, match=r"64 of them different.*knows 63 tokens"):
        _tokens(copy.TASK, [str(i) for i in range(64)])
    with pytest.raises(UsageError, match=r"the text has 33 pieces.*rows of 32"):
        _tokens(recall.TASK, ["a"] * 33)
    said = maps("a one b two b", trained="recall", steps=1, n_heads=1).weights
    assert said.endswith("words that first stand at an odd place are keys, the others values")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trained": "copy", "source": "x y"}, "leave out --source"),
        ({"trained": "copy", "causal": False}, "read one text from left to right"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n-kv-heads one of its divisors"),
        ({"n_heads": 0}, "n-heads 0 must be at least 1"),
        ({"n_heads": 129}, "more than 128 maps cannot be read"),
        ({"seed": 2**32}, "seed is 4294967296; it must be from 0 to"),
        ({"seed": -1}, "seed is -1"),
        ({"trained": "bogus"}, "unknown task 'bogus'"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        maps("one two", **options)  # type: ignore[arg-type]


# Pictures


def test_terminal_map_shades_by_weight_and_names_every_row() -> None:
    head = measured([[1, 0], [0.1, 0.9]], words="left right")
    lines = drawn(head, ["left", "right"], ["left", "right"]).splitlines()
    assert lines[2] == "  1 ██  | left"
    assert lines[3] == "  2 ░░██| right"
    assert CAUTION.split(":")[0] in to_text(document(maps(SENTENCE)))


@pytest.mark.parametrize("n_words", [28, 29, 56, 57, 128])
def test_terminal_maps_fit_80_columns(n_words: int) -> None:
    words = ["understandably", "incomprehensibilities", "안녕하세요안녕하세요", "of"]
    found = maps(" ".join(words[i % 4] for i in range(n_words)), n_heads=1)
    text = drawn(found.heads[0], found.text, found.text)
    widths = [sum(1 + ("가" <= c <= "힣") for c in line) for line in text.splitlines()]
    assert max(widths) <= 78  # and two of margin
    parts = -(-n_words // 56)
    assert text.count("layer 1, head 1") == parts
    assert ("keys 57 to" in text) == (parts > 1)
    assert f"{n_words:>3} " in text


def test_keys_of_a_long_source_are_wrapped() -> None:
    found = maps("a b", source="one two three four " * 10, n_heads=1)
    lines = drawn(found.heads[0], found.text, found.source or ()).splitlines()
    assert max(map(len, lines)) <= 78
    assert "40 four" in lines[-1]


def test_a_part_leaves_out_rows_without_weight() -> None:
    found = maps("a b c d " * 15, n_heads=1)  # 60 pieces: of keys 57 to 60 rows before 57 see none
    second = drawn(found.heads[0], found.text, found.text).split("keys 57 to 60 of 60\n")[1]
    assert [int(line[:3]) for line in second.splitlines()[1:]] == [57, 58, 59, 60]


def test_title_and_caution_of_a_picture_are_wrapped() -> None:
    long = "words of a title that goes on " * 8
    one = Map(title="layer 1, head 1: entropy 0.49 bits", weights=[[1]], rows="a", columns="a")
    root = ElementTree.fromstring(maps_svg([one, one], title=long, caption=long))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    texts = [e for e in root if e.tag.endswith("text") and "x" in e.attrib]
    assert all(float(e.attrib["y"]) < height for e in texts)
    for e in texts:
        # 0.6 of the font's size is wider than the letters of common sans-serif fonts on average.
        end = float(e.attrib["x"]) + 0.6 * float(e.get("font-size", 11)) * len(e.text or "")
        assert e.get("text-anchor") == "end" or end <= width
    left, right = (e for e in texts if e.get("font-weight"))
    assert float(right.attrib["x"]) - float(left.attrib["x"]) > 0.6 * 11 * len(one.title)
    assert " ".join(e.text or "" for e in texts).count("goes on") == 16


def test_right_to_left_words_are_isolated() -> None:
    text = to_text(document(maps("שלום עולם שלום")))
    assert "| \u2068שלום\u2069" in text


@pytest.mark.parametrize(
    "text",
    [SENTENCE, "猫が座る。犬も。", "a <b> & 'c' ]]>", "👨‍👩‍👧 👍🏽 ok", "שלום עולם", "नमस्ते दुनिया"],
)
def test_svg_is_well_formed_and_has_every_weight(text: str) -> None:
    found = maps(text, n_heads=2)
    root = ElementTree.fromstring(picture(found))
    cells = [e for e in root.iter() if e.tag.endswith("rect") and len(e)]
    assert len(cells) == 2 * len(found.text) ** 2
    words = "".join(root.itertext())
    assert all(piece in words for piece in found.text)
    assert picture(found) == picture(found)


# Words of any language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't panic, said the cat.", ["Don't", "panic", ",", "said", "the", "cat", "."]),
        ("猫がPython3を学ぶ。", ["猫", "が", "Python3", "を", "学", "ぶ", "。"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("안녕 세계", ["안녕", "세계"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("«¿Qué?» dijo", ["«", "¿", "Qué", "?", "»", "dijo"]),
        ("👨‍👩‍👧 👍🏽", ["👨‍👩‍👧", "👍🏽"]),
        ("word", ["w", "o", "r", "d"]),
        ("a\x00b\tc \ud800", ["a", "b", "c", "?"]),
        ("abc\u202e def", ["abc", "def"]),
    ],
)
def test_pieces(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_flags_are_pairs_of_letters() -> None:
    assert graphemes("🇫🇷🇩🇪") == ["🇫🇷", "🇩🇪"]


@pytest.mark.parametrize("text", ["", "  ", "x", "\x00\x01", "\u200d", "word " * 129])
def test_a_text_that_makes_no_map(text: str) -> None:
    with pytest.raises(UsageError):
        pieces(text)
