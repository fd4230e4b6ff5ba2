"""Exact cache, parameters and valid splits of a model, from its config.json or the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configurator.cli.options import (
    CUSTOM_TARGET,
    Batch,
    Context,
    Format,
    Given,
    KvDtype,
    Output,
    PageSize,
    SourceLen,
    Target,
    TensorParallel,
    takes,
)

if TYPE_CHECKING:
    from configurator.interop.audit import Audit

__all__ = ["audit"]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A config.json, a folder with one, - for standard input, or a catalog model's name.",
    ),
]
KvBudget = Annotated[
    str | None,
    typer.Option(
        "--kv-budget",
        metavar="BYTES",
        rich_help_panel="Target",
        help="Memory of one rank for the cache alone, in place of a target: 8GiB.",
    ),
]
CacheMode = Annotated[
    str | None,
    typer.Option(
        "--cache-mode",
        metavar="MODE",
        rich_help_panel="Question",
        help="MLA: latent (default), or rebuilt: keys and values of every head.",
    ),
]
_QUESTION = {
    "context": Context,
    "batch": Batch,
    "kv_dtype": KvDtype,
    "source_len": SourceLen,
    "cache_mode": CacheMode,
    "target": Target,
    "tensor_parallel": TensorParallel,
    "page_size": PageSize,
    "kv_budget": KvBudget,
    **CUSTOM_TARGET,
}


@takes(_QUESTION)
def audit(given: Given, files: Files, format: Format = None, output: Output = None) -> int:
    """Read model configurations as they are on disk: exact cache, parameters, splits, limits.

    Several files are compared. Without --context a model's own longest context is used. Exit code
    1 means that the ranks asked are not allowed or that it does not fit; 2, that a file is wrong.
    """
    from configurator.cli.output import deliver, form
    from configurator.core.errors import UsageError
    from configurator.interop.audit import audit as audited
    from configurator.render.audit import audit_document, audits_document
    from configurator.target import device_of

    chosen = form(format, output)
    if files.count("-") > 1:
        raise UsageError("- is given twice; standard input can be read once")
    device = device_of(given)
    found = [(name, audited(name, device=device, **given)) for name in files]
    names = [_name(name, one) for name, one in found]
    answers = [one for _, one in found]
    if len(answers) == 1:
        value = _value(answers[0], files[0]) if chosen == "json" else None
        deliver(value, lambda: audit_document(answers[0], names[0]), chosen, output)
    else:
        pairs = list(zip(names, answers, strict=True))
        rows = [_value(one, name) for name, one in found] if chosen == "json" else []
        deliver({"rows": rows}, lambda: audits_document(pairs), chosen, output)
    return 1 if any(_is_no(one, given) for one in answers) else 0


def _value(answer: Audit, source: str) -> dict[str, object]:
    from configurator import __version__

    return {"source": source, **answer.to_dict(), "version": __version__}


def _name(source: str, answer: Audit) -> str:
    """A short name: the folder of a ``config.json``, the file's own name, or the catalog's."""
    if source == "-":
        return answer.model_type or "standard input"
    path = Path(source)
    if path.name == "config.json" and path.resolve().parent.name:
        return path.resolve().parent.name
    return path.name or source


def _is_no(answer: Audit, given: Given) -> bool:
    """Ranks that the heads do not allow, what does not fit, or a broken rule of severity error.

    Rules on memory count only where a context was asked: a model's longest is nobody's question.
    """
    if answer.answer_is_no:
        return True
    return any(
        rule.verdict == "broken"
        and rule.severity == "error"
        and ("context" in given or not rule.id.startswith("memory/"))
        for rule in answer.rules
    )
