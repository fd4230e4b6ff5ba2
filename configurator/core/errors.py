"""The one error that a user's mistake raises, and how to name the nearest known value."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["MissingError", "MissingExtra", "UsageError", "nearest", "one_line", "show",
           "unknown"]  # fmt: skip

_LONGEST = 700  # characters of one error line
_LONGEST_WORD = 250  # what was given may be a path, or nonsense without an end


def one_line(message: object, most: int = _LONGEST) -> str:
    """A message as one line of at most ``most`` letters, with what goes on for too long cut."""
    words = (w if len(w) <= _LONGEST_WORD else f"{w[:40]}..." for w in str(message).split())
    line = " ".join(words)
    return line if len(line) <= most else f"{line[: most - 3]}..."


class UsageError(ValueError):
    """A question that cannot be answered as asked: one line that says what to do instead.

    The command line prints it and exits with 2; Python callers catch it as a ``ValueError``.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class MissingError(RuntimeError):
    """Something outside the question is not here: a device, or a package. Exit code 3."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class MissingExtra(MissingError):  # noqa: N818 - callers read it as a name, not a kind
    """A package of an optional extra is not installed; says in one line how to install it.

    Args:
        extra: ``bench``, ``plots``, ``cluster`` or ``dev``.
        package: what could not be imported, such as ``torch``.
        purpose: what needs it, such as ``the micro-benchmark``.
    """

    def __init__(self, extra: str, package: str, purpose: str = "this command") -> None:
        self.extra = extra
        self.package = package
        super().__init__(
            f'{purpose} needs {package}; install it with: pip install "mha-configurator[{extra}]"'
        )


def show(value: object, limit: int = 40) -> str:
    """``value`` as it may stand in a one-line message: plain ASCII, quoted, cut to ``limit``."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**limit:
        return f"a whole number {'above ' if value > 0 else 'below -'}10^{limit}"
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


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
