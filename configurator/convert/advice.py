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
from configurator.core.case import Case, Device
from configurator.core.dtypes import dtype
from configurator.core.errors import UsageError
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.report import Option
from configurator.interop.audit import ask
from configurator.interop.audit.asked import case_asked, usual_context
from configurator.interop.audit.source import read_source
from configurator.target import describe

__all__ = ["Conversion", "convert", "convert_case"]

_LONGEST_CONTEXT = 131_072


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

    Raises ``UsageError`` for a source that cannot be read, does not state all its weights or has
    other attention, or a split that is not possible.
    """
    reading, stored = read_source(source)
    name = "configuration" if isinstance(source, Mapping) else os.fspath(source)
    if not isinstance(reading.shape.main.attention, GroupedQuery | Latent):
        raise UsageError(
            f"{name}: there is nothing to convert, since its attention is no MHA, GQA, MQA or MLA; "
            "take audit for what it keeps"
        )
    unknown = (*reading.unknown, *reading.active_unknown)
    if unknown:
        raise UsageError(
            f"{name}: what converting is worth depends on the weights, and the file does not state "
            f"{', '.join(unknown)}; give the whole config.json, or take audit for its cache alone"
        )
    longest = usual_context(reading)
    question = ask(
        context=min(longest, _LONGEST_CONTEXT) if context is None else context,
        batch=batch,
        kv_dtype=kv_dtype,
        tensor_parallel=tensor_parallel,
        page_size=page_size,
        source_len=source_len,
        device=device,
    )
    weights = stored if weight_dtype is None else dtype(weight_dtype, "weight-dtype").name
    warnings = list(reading.warnings)
    case, rule, allowed = case_asked(reading, question, warnings, weights=weights)
    ranks = int(case.workload.tensor_parallel)
    refusal = "" if allowed else f"tensor-parallel {ranks} is {rule.verdict(ranks)}"
    return convert_case(
        case, source=name, command=command, warnings=tuple(warnings), refusal=refusal
    )


def convert_case(
    case: Case,
    *,
    source: str,
    command: str = "",
    warnings: tuple[str, ...] = (),
    refusal: str = "",
) -> Conversion:
    """The same for a model that was read already; ``refusal`` is why the ranks cannot be."""
    work = case.workload
    now = option(case)
    changes = changes_of(case, now)
    lighter = smaller_cache(case) if changes else None
    verdict, reason, chosen = judged(case, now, lighter, changes)
    if refusal:
        verdict, reason, chosen = "not enough", refusal, None
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
        target=describe(case.device),
        warnings=tuple(dict.fromkeys((*warnings, *cautions(case, chosen)))),
        command=command,
    )
