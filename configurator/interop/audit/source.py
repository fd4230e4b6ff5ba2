"""What an audit starts from: a file, a folder, standard input, a mapping, or a catalog's name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from configurator.catalog.published import model, model_names
from configurator.catalog.targets import device as named_device
from configurator.core.audit_report import Audit
from configurator.core.case import Device
from configurator.core.errors import UsageError, nearest, show
from configurator.interop.audit.answer import audit_shape
from configurator.interop.audit.published import reading_of
from configurator.interop.audit.question import ask
from configurator.interop.audit.weights import with_weights
from configurator.interop.config_file import read_config
from configurator.interop.huggingface.reading import Reading, read_shape

__all__ = ["audit", "read_source"]


def audit(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    target: str | None = None,
    device: Device | None = None,
    **question: Any,
) -> Audit:
    """What a model's cache and parameters really are, and what fits on a target.

    ``source`` is a ``config.json``, a folder that holds one, ``-`` for standard input, a parsed
    configuration, or the name of a model in the catalog. Keywords: ``kv_dtype`` (bf16),
    ``context`` (the model's longest), ``batch`` (1), ``tensor_parallel`` (the target's device
    count), ``target`` (a catalog name) or ``device``, ``page_size`` (1), ``source_len``,
    ``kv_budget`` (bytes of one rank for the cache alone), ``cache_mode`` (latent or rebuilt).
    Bytes are exact and logical: pages are counted only when asked.

    Raises ``UsageError`` for a file or a question that cannot be right, with one line that says
    what was found and what to do.
    """
    if target is not None and device is None:
        device = named_device(target)
    reading, weights = read_source(source)
    return audit_shape(reading, ask(device=device, **question), weights=weights)


def read_source(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Reading, str]:
    """The model that ``source`` names, and the type its weights are stored in.

    Raises ``UsageError`` as :func:`audit` does.
    """
    if isinstance(source, Mapping):
        return _from_values(source)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(name, str):
        raise UsageError(
            f"a model is named by text or a mapping, not {show(name)}; give the path of a "
            "config.json, what it holds, or a name that `models` lists"
        )
    known = set() if name == "-" or _exists(name) else set(model_names())
    if known and (name.casefold() in known or "/" not in name):
        return _from_catalog(name, known), "bf16"
    return _from_values(read_config(name))


def _from_values(values: Mapping[str, Any]) -> tuple[Reading, str]:
    return with_weights(read_shape(values), values)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _from_catalog(name: str, known: set[str]) -> Reading:
    try:
        found = model(name)
    except UsageError:
        close = nearest(name, known)
        hint = f"; nearest models: {', '.join(close)}" if close else ""
        raise UsageError(
            f"no file and no catalog model {show(name, 120)}{hint}; give a config.json, a folder "
            f"that holds one, - for standard input, or a name that `models` lists"
        ) from None
    return reading_of(found)
