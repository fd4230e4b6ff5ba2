"""Split a sentence of any language into the pieces that a map's rows and columns stand for.

Words where a script puts spaces between them; single characters, as a reader sees them, where it
does not. A simplification of Unicode's segmentation (UAX #29), without its data tables.
"""

from __future__ import annotations

import unicodedata

from configurator.core.errors import UsageError

__all__ = ["MOST_PIECES", "graphemes", "pieces"]

MOST_PIECES = 128
_JOINER = "\u200d"
_JOINERS = ("\u200c", _JOINER)
_UNSPACED = (
    "CJK ", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO", "YI ",
)  # fmt: skip


def graphemes(text: str) -> list[str]:
    """Characters as seen: marks, joined emoji, skin tones and flag letters stay together.

    >>> graphemes("e\\u0301a")
    ['é', 'a']
    """
    found: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        if found and (_extends(char) or found[-1].endswith(_JOINER) or _is_flag(found[-1], char)):
            found[-1] += char
        else:
            found.append(char)
    return found


def _extends(char: str) -> bool:
    tone = 0x1F3FB <= ord(char) <= 0x1F3FF
    jamo = 0x1160 <= ord(char) <= 0x11FF  # vowels and finals of a Hangul syllable not composed
    return tone or jamo or char == _JOINER or unicodedata.category(char) in ("Mn", "Mc", "Me")


def _is_flag(before: str, char: str) -> bool:
    return len(before) == 1 and all(0x1F1E6 <= ord(c) <= 0x1F1FF for c in before + char)


def pieces(text: str) -> list[str]:
    """Words and punctuation, or characters where the script has no spaces.

    A text that is one word is taken character by character. Raises ``UsageError`` for a text
    without anything to see, of one piece, or of more than 128 pieces.

    >>> pieces("The cat sat.")
    ['The', 'cat', 'sat', '.']
    >>> pieces("猫が座る")
    ['猫', 'が', '座', 'る']
    """
    clean = text.encode("utf-8", "replace").decode("utf-8")
    # Direction overrides and the like would reorder the terminal around them.
    clean = "".join(c for c in clean if unicodedata.category(c) != "Cf" or c in _JOINERS)
    clean = "".join(" " if unicodedata.category(c) in ("Cc", "Cn") else c for c in clean)
    found = [piece for word in clean.split() for piece in _split(word)]
    if len(found) == 1:
        found = graphemes(found[0])
    if len(found) < 2:
        what = "one piece" if found else "nothing to see"
        raise UsageError(f"the text {clean[:40]!r} has {what}; give at least two words")
    if len(found) > MOST_PIECES:
        raise UsageError(
            f"the text has {len(found)} pieces; a map of more than {MOST_PIECES} cannot be read, "
            "so give a shorter one"
        )
    return found


def _split(word: str) -> list[str]:
    parts = graphemes(word)
    if any(unicodedata.name(part[0], "").startswith(_UNSPACED) for part in parts):
        return _runs(parts)
    first, last = 0, len(parts)
    while first < last and _is_mark(parts[first]):
        first += 1
    while last > first and _is_mark(parts[last - 1]):
        last -= 1
    middle = ["".join(parts[first:last])] if first < last else []
    return [*parts[:first], *middle, *parts[last:]]


def _runs(parts: list[str]) -> list[str]:
    """Unspaced script one character a piece; a Latin word or a number inside it stays whole."""
    found: list[str] = []
    joins = False
    for part in parts:
        name = unicodedata.name(part[0], "")
        whole = part[0].isalnum() and not name.startswith(_UNSPACED)
        if whole and joins:
            found[-1] += part
        else:
            found.append(part)
        joins = whole
    return found


def _is_mark(part: str) -> bool:
    return unicodedata.category(part[0]).startswith("P")
