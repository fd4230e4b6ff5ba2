"""An existing model as something to export: its file or its name in the catalog."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from configurator.interop.audit.answer import audit_shape
from configurator.interop.audit.question import ask
from configurator.interop.audit.source import read_source
from configurator.interop.export.subject import FOLDER, Subject

__all__ = ["subject_from"]


def subject_from(source: str | os.PathLike[str] | Mapping[str, Any], **question: Any) -> Subject:
    """The model that ``source`` names, asked as an audit is asked.

    Raises ``UsageError`` as :func:`configurator.interop.audit.audit` does.
    """
    reading, weights = read_source(source)
    audit = audit_shape(reading, ask(**question), weights=weights)
    if audit.case is None:
        raise ValueError("an audit carries the case that it was made of")
    return Subject(
        case=audit.case, layers=reading.layers, source=_folder(source), warnings=audit.warnings
    )


def _folder(source: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """Where the model lies: the folder of its file; a placeholder where it is not a file."""
    path = None if isinstance(source, Mapping) else Path(source)
    if path is None or not path.exists():
        return FOLDER
    return str(path if path.is_dir() else path.parent)
