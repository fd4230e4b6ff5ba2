"""One text that either names a thing exactly or searches for it; catalogs share this."""

from __future__ import annotations

from collections.abc import Mapping

from configurator.core.errors import unknown

__all__ = ["search"]


def search(what: str, text: str, texts: Mapping[str, str]) -> list[str]:
    """Names whose searchable text holds every word of ``text``, ignoring case.

    Raises ``UsageError`` with the nearest names when nothing matches.
    """
    words = text.casefold().split()
    found = [name for name, body in texts.items() if all(w in body.casefold() for w in words)]
    if not found or not words:
        raise unknown(what, text, texts, f"`mha-configurator {what}s` lists them")
    return found
