"""The advice: a model read, priced as it is and converted, and the verdict with its reason."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from configurator import __version__
from configurator.assemble import option
from configurator.convert.change import Change, changes_of, smaller_cache
from configurator.convert.steps import cautions, steps
from configurator.convert.verdict import judged
from configurator.core.case import Case, Device, Workload
from configurator.core.dtypes import cache_type
from configurator.core.errors import UsageError
from configurator.core.report import Option
from configurator.interop.audit.source import read_source
from configurator.interop.huggingface.reading import Reading
from configurator.target import describe

__all__ = ["Conversion", "convert", "convert_shape"]

_DEFAULT_CONTEXT, _LONGEST_CONTEXT = 8192, 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A model as it is, every conversion of it, and the advice.

    ``verdict`` is ``worth it``, ``smaller cache type first``, ``not worth it``, ``not enough`` or
    ``nothing to convert``; where no target was named it is ``depends``. ``chosen`` names the
    change that the advice is about.
    """

    source: str
    now: Option
    smaller_cache: Option | None
    changes: tuple[Change, ...]
    verdict: str
    reason: str
    chosen: str
    steps: tuple[str, ...]
    request: dict[str, Any]
    target: dict[str, Any]
    warnings: tuple[str, ...]
    command: str
    version: str = __version__


def convert(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    context: int | None = None,
    batch: int = 1,
    kv_dtype: str = "bf16",
    weight_dtype: str | None = None,
    tensor_parallel: int | None = None,
    page_size: int = 1,
    source_len: int | None = None,
    device: Device | None = None,
    command: str = "",
) -> Conversion:
    """Advice for the model that ``source`` names: a ``config.json``, a folder, ``-``, or a name.

    ``context`` is the model's longest up to 131,072 where not given; weights are taken as stored.

    Raises ``UsageError`` for a source that cannot be read, or a split that is not possible.
    """
    reading, stored = read_source(source)
    ranks = tensor_parallel or (device.count if device else 1)
    if device is not None and (ranks > device.count or device.count % ranks):
        raise UsageError(
            f"tensor-parallel {ranks} does not go with the target's {device.count} devices; "
            "use one of their divisors"
        )
    longest = reading.max_positions or _DEFAULT_CONTEXT
    work = Workload(
        context=context or min(longest, _LONGEST_CONTEXT),
        batch=batch,
        weight_dtype=weight_dtype or stored,
        kv=cache_type(kv_dtype),
        tensor_parallel=ranks,
        page_size=page_size,
        source_len=source_len or reading.source_default or 0,
    )
    name = "configuration" if isinstance(source, Mapping) else os.fspath(source)
    return convert_shape(reading, work, device, source=name, command=command)


def convert_shape(
    reading: Reading, work: Workload, device: Device | None, *, source: str, command: str = ""
) -> Conversion:
    """The same for a model that was read already."""
    case = Case(shape=reading.shape, workload=work, device=device)
    now = option(case)
    changes = changes_of(case, now)
    lighter = smaller_cache(case) if changes else None
    verdict, reason, chosen = judged(case, now, lighter, changes)
    return Conversion(
        source=source,
        now=now,
        smaller_cache=lighter,
        changes=tuple(changes),
        verdict=verdict,
        reason=reason,
        chosen=chosen.name if chosen else "",
        steps=steps(case, chosen) if chosen else (),
        request={
            "context": int(work.context),
            "batch": int(work.batch),
            "tensor_parallel": int(work.tensor_parallel),
            "weight_dtype": work.weight_dtype,
            "kv_dtype": work.kv.name,
        },
        target=describe(device),
        warnings=(*reading.warnings, *cautions(case, chosen)),
        command=command,
    )
