"""What was asked, as understood, and the command line that asks it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from configurator.core.case import Workload
from configurator.schema import GeometryRequest, Request, rate_text

__all__ = ["command", "echo", "repeated"]

_OPPOSITE = {"tie_embeddings": "untie-embeddings", "full_width": "shrink"}


def echo(request: Request | GeometryRequest, workload: Workload) -> dict[str, Any]:
    """The request as understood, whole numbers, defaults filled in."""
    said = request.model_dump(mode="json")
    said["tensor_parallel"] = int(workload.tensor_parallel)
    said["kv_dtype"] = workload.kv.name
    return said


def command(name: str, request: Request | GeometryRequest, **options: object) -> str:
    """The exact command that reproduces the answer; defaults are left out.

    ``options`` are the command's own, beside what the request says.
    """
    fields = type(request).model_fields
    given = {
        key: value
        for key, field in fields.items()
        if (value := getattr(request, key)) not in (None, field.default)
    }
    if isinstance(request, GeometryRequest):
        given.pop("allow_decoupled_heads", None)
    for rate in ("bandwidth", "tflops"):
        if rate in given:
            given[rate] = rate_text(rate, given[rate])
    return repeated(name, given | options)


def repeated(name: str, options: Mapping[str, object]) -> str:
    """``name`` with its options, quoted for a shell.

    An option of None is left out, True is the bare flag, False the flag of the opposite; several
    values are joined by commas.

    >>> repeated("study mqa", {"task": "recall", "heads": (1, 4), "steps": None})
    'mha-configurator study mqa --task recall --heads 1,4'
    """
    words = ["mha-configurator", *name.split()]
    for key, value in options.items():
        if value is None:
            continue
        flag = _OPPOSITE[key] if value is False else key.replace("_", "-")
        words.append(f"--{flag}")
        if not isinstance(value, bool):
            words.append(",".join(map(str, value)) if isinstance(value, tuple) else str(value))
    return shlex.join(words)
