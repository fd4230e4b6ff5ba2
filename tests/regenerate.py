"""Makes the checked-in pages anew: ``python tests/regenerate.py``; ``--check`` only compares.

What each page needs is named here once, so that the test, ``make pages`` and a reader of
outputs/ agree on how it was made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # a source tree without an installation works too
    sys.path.insert(0, str(ROOT))

OUTPUTS = ROOT / "outputs"
README_EXAMPLE = "recommend --params 7B --context 32k --target h100-sxm"
REPORTS = {
    "125m-2k-rtx-3060": "--params 125M --context 2k --target rtx-3060",
    "350m-4k-rtx-4090": "--params 350M --context 4k --target rtx-4090",
    "1b-8k-rtx-4090": "--params 1B --context 8k --target rtx-4090",
    "7b-32k-h100": "--params 7B --context 32k --target h100-sxm",
    "70b-128k-8xh100": "--params 70B --context 128k --target 8xh100-sxm",
    "236b-a21b-128k-8xh200-memory": "--params 236B --active-params 21B --context 128k "
    "--target 8xh200-sxm --batch 8 --priority memory",
    "3b-8k-phone": "--params 3B --context 8k --target snapdragon-8-elite",
    "3b-8k-m3-max": "--params 3B --context 8k --target m3-max-40",
    "1.5b-4k-jetson-agx-orin": "--params 1.5B --context 4k --target jetson-agx-orin",
    "300m-512-encoder": "--params 300M --context 512 --arch encoder --priority training",
    "7b-1m-rtx-4090": "--params 7B --context 1M --target rtx-4090",
    "220m-encoder-decoder-4k": "--params 220M --context 1k --source-len 4k "
    "--arch encoder-decoder --target rtx-4090",
    "7b-128k-mha": "--params 7B --context 128k --target h100-sxm --projection mha "
    "--d-model 4096 --d-head 128",
}


def request_of(arguments: str) -> dict[str, str]:
    """``--params 7B --context 32k`` as keyword arguments of a ``Request``."""
    words = arguments.split()
    return {
        flag.removeprefix("--").replace("-", "_"): value
        for flag, value in zip(words[::2], words[1::2], strict=True)
    }


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with its text as it should be."""
    yield from _schemas()
    yield from _reports()
    yield from _rulebook()
    yield from _backtest()
    yield ROOT / "README.md", _readme()


def _schemas() -> Iterator[tuple[Path, str]]:
    from configurator.schema import report_schema, request_schema

    for name, schema in (("request", request_schema()), ("report", report_schema())):
        yield OUTPUTS / f"{name}.schema.json", json.dumps(schema, indent=2) + "\n"


def _reports() -> Iterator[tuple[Path, str]]:
    from configurator import Request, recommend

    for name, arguments in REPORTS.items():
        advice = recommend(Request(**request_of(arguments)))
        yield OUTPUTS / "reports" / f"{name}.md", advice.to_markdown()
        yield OUTPUTS / "reports" / f"{name}.json", advice.to_json() + "\n"


def _rulebook() -> Iterator[tuple[Path, str]]:
    try:
        made = import_module("configurator.render.pages")
    except ModuleNotFoundError:
        return
    yield OUTPUTS / "rulebook.md", made.rulebook_page()
    yield OUTPUTS / "evidence.md", import_module("configurator.render.evidence").evidence_page()


def _backtest() -> Iterator[tuple[Path, str]]:
    """As ``mha-configurator backtest --output outputs`` writes them."""
    from configurator.backtest import backtest
    from configurator.render.backtest import document
    from configurator.render.json import to_json
    from configurator.render.markdown import to_markdown

    found = backtest()
    yield OUTPUTS / "backtest.md", to_markdown(document(found))
    yield OUTPUTS / "backtest.json", to_json(found) + "\n"


def _readme() -> str:
    from configurator import Request, recommend
    from configurator.cli.app import commands
    from configurator.render.content import recommendation
    from configurator.render.terminal import to_text

    arguments = README_EXAMPLE.removeprefix("recommend ")
    advice = recommend(Request(**request_of(arguments)))
    shown = to_text(recommendation(advice.report), 96).partition("\nRules ")[0].rstrip("\n")
    shown += "\n\n[rules, published models, initialization, test hook and the command follow]"
    example = f"```\n$ mha-configurator {README_EXAMPLE}\n\n{shown}\n```\n"
    rows = "| command | does |\n|---|---|\n"
    rows += "".join(f"| `{name}` | {summary} |\n" for name, summary in commands().items())
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return _between(_between(text, "example", example), "commands", rows)


def _between(text: str, name: str, block: str) -> str:
    """``text`` with what stands between two comments replaced."""
    before, rest = text.split(f"<!-- {name} -->\n", 1)
    _, after = rest.split(f"<!-- end of {name} -->\n", 1)
    return f"{before}<!-- {name} -->\n{block}<!-- end of {name} -->\n{after}"


def stale() -> list[str]:
    """Pages that differ from what the code makes, and reports that nothing makes any more."""
    wanted = dict(pages())
    found = [
        str(path.relative_to(ROOT))
        for path, text in wanted.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    orphans = set((OUTPUTS / "reports").glob("*")) - set(wanted)
    return found + sorted(f"{path.relative_to(ROOT)} (nothing makes it)" for path in orphans)


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are out of date and return 1."""
    if arguments == ["--check"]:
        out_of_date = stale()
        for name in out_of_date:
            print(f"out of date: {name}; run: make pages")
        return 1 if out_of_date else 0
    for path, text in pages():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
