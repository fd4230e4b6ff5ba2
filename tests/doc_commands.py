"""Finds the command lines that the documents show, so that tests can hold them to the tool."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKILL = ROOT / "outputs" / "skill-mha-configurator.md"
DOCUMENTS = (SKILL, ROOT / "README.md", ROOT / "CONTRIBUTING.md")
_LINE = re.compile(r"^(?:    |\$ )?(?:mha|mha-configurator) (?!-configurator)([a-z][^\n#|]*)", re.M)
_INLINE = re.compile(r"`(?:mha|mha-configurator) ([a-z][^`\n]*)`")


def commands_in(text: str) -> list[list[str]]:
    """Every command line of ``text``, in code blocks and inline, as words."""
    found = [*_LINE.findall(text), *_INLINE.findall(text)]
    return [shlex.split(line.strip()) for line in found]


def shown(path: Path) -> list[list[str]]:
    """The command lines of one document."""
    return commands_in(path.read_text(encoding="utf-8"))
