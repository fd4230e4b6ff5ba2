"""The one error that a user's mistake raises, and how to name the nearest known value."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UsageError", "nearest", "unknown"]


class UsageError(ValueError):
    """A question that cannot be answered as asked: one line that says what to do instead.

    The command line prints it and exits with 2; Python callers catch it as a ``ValueError``.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))


def nearest(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Known names that resemble ``name``, most alike first (at most ``n``)."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = get_close_matches(name.casefold(), list(folded), n=n, cutoff=0.5)
    within = [c for c in folded if name and name.casefold() in c and c not in close]
    return [folded[c] for c in (close + sorted(within))[:n]]


def unknown(what: str, name: str, known: Iterable[str], hint: str = "") -> UsageError:
    """A ``UsageError`` for a name that is not known, with the nearest ones and a hint."""
    close = nearest(name, known)
    text = f"unknown {what} {name[:80]!r}"
    if close:
        text += f"; nearest: {', '.join(close)}"
    if hint:
        text += f"; {hint}"
    return UsageError(text)
