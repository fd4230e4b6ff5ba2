"""What `recommend --from` prints: whether a model that exists is worth converting, and how."""

from __future__ import annotations

from typing import Any

from configurator.core.errors import UsageError

__all__ = ["converted"]

_TAKEN = ("context", "batch", "kv_dtype", "weight_dtype", "tensor_parallel", "page_size",
          "source_len")  # fmt: skip
_DEVICE = ("target", "memory", "bandwidth", "tflops")


def converted(
    source: str, given: dict[str, Any], format: str | None, output: str | None, *, sweep: bool
) -> int:
    """Advise, print or write it; 1 where it does not fit and no conversion helps.

    Raises ``UsageError`` for arguments that a model which exists already answers.
    """
    from configurator.cli.output import deliver, form
    from configurator.convert import convert
    from configurator.core.units import parse_tokens
    from configurator.render.conversion import document
    from configurator.repeat import repeated
    from configurator.target import device_of

    chosen = form(format, output)
    stray = [k for k in given if k not in (*_TAKEN, *_DEVICE)] + (["sweep"] if sweep else [])
    if stray:
        flag = stray[0].replace("_", "-")
        raise UsageError(
            f"--{flag} does not go with --from: the model's own configuration says what it is; "
            f"leave it out (allowed: {', '.join('--' + k.replace('_', '-') for k in _TAKEN)}, "
            "--target)"
        )
    command = repeated("recommend", {"from": source, **given})
    device = device_of(dict(given))
    work = {k: given[k] for k in _TAKEN if k in given}
    for key in ("context", "source_len"):
        if key in work:
            work[key] = parse_tokens(work[key], key.replace("_", "-"))
    found = convert(source, device=device, command=command, **work)
    deliver(found, lambda: document(found), chosen, output)
    return 1 if found.verdict == "not enough" else 0
