"""Settings for other programs. One module in ``writers`` is one format, found by walking.

A format is a module with ``NAMES`` (its name, then aliases), ``TITLE`` (a line for lists) and
``export(subject)``, which returns an :class:`Exported` or raises ``UsageError`` that says what the
format cannot express. Nothing is dropped silently.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from configurator.core.case import Case
from configurator.core.errors import UsageError, show, unknown
from configurator.interop.export.source import subject_from
from configurator.interop.export.subject import Exported, RanksError, Subject, in_order

__all__ = [
    "Exported",
    "RanksError",
    "Subject",
    "export",
    "export_case",
    "formats",
    "in_order",
    "subject_from",
]


@cache
def formats() -> dict[str, ModuleType]:
    """Every format by its name."""
    from configurator.interop.export import writers as folder

    found = {}
    for info in iter_modules(folder.__path__):
        module = import_module(f"{folder.__name__}.{info.name}")
        found[module.NAMES[0]] = module
    return found


def export(subject: Subject, to: str) -> Exported:
    """The settings of format ``to`` for a subject.

    Raises ``UsageError`` for an unknown format and for what the format cannot express.
    """
    if not isinstance(subject, Subject):
        raise UsageError(f"subject {show(subject)} is none; give what subject_from(model) returns")
    wanted = str(to).strip().lower().replace("-", "_").replace(".", "_")
    for module in formats().values():
        if wanted in module.NAMES:
            done: Exported = module.export(subject)
            return done
    raise unknown("format", str(to), formats(), f"use {', '.join(formats())}")


def export_case(case: Case, to: str) -> Exported:
    """The settings of format ``to`` for a geometry or a recommendation, given as a case."""
    return export(Subject(case=case, layers=in_order(case.shape)), to)
