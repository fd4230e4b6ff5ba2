"""Which of two geometries the evidence favours: loss, decode time and cache, each with its error.

Unlike quantities are not summed. A difference counts where it is larger than its error; the
evidence favours a side that is ahead in something and behind in nothing.
"""

from __future__ import annotations

from typing import Any

from configurator.core.quality import ERROR_NATS, MLA_ERROR_NATS

__all__ = ["judged"]

_TIME = 1.10  # what a pair of predictions of one kind can tell apart
_TIME_LATENT = 1.25  # the same where one of the two is MLA
_BYTES = 1.02
Costs = dict[str, float | None]


def judged(ours: Costs, theirs: Costs, *, latent: bool) -> dict[str, Any]:
    """``favours`` (ours, theirs, neither, cannot tell), ``says`` why, and the differences.

    ``neither`` means that each is ahead in something; ``cannot tell`` that no difference is
    larger than its error. ``latent`` says that one of the two is MLA.
    """
    error = MLA_ERROR_NATS if latent else ERROR_NATS
    loss = _number(theirs, "expected_nats") - _number(ours, "expected_nats")
    bytes_ = _number(theirs, "device_bytes") / max(_number(ours, "device_bytes"), 1.0)
    ahead: dict[str, list[str]] = {"ours": [], "theirs": []}
    inside = []
    if abs(loss) > error:
        ahead["ours" if loss > 0 else "theirs"].append(
            f"{abs(loss):.3f} +- {error:.3f} nats less expected loss"
        )
    else:
        inside.append(f"loss ({loss:+.3f} +- {error:.3f} nats)")
    if max(bytes_, 1 / bytes_) > _BYTES:
        ahead["ours" if bytes_ > 1 else "theirs"].append(
            f"{max(bytes_, 1 / bytes_):.3g}x less cache on a device"
        )
    else:
        inside.append("cache")
    time = _time(ours, theirs)
    if time is not None:
        limit = _TIME_LATENT if latent else _TIME
        if max(time, 1 / time) > limit:
            ahead["ours" if time > 1 else "theirs"].append(
                f"a decode step {max(time, 1 / time):.2g}x as fast"
            )
        else:
            inside.append("decode time")
    return {
        "favours": _favoured(ahead),
        "says": _says(ahead, inside),
        "loss_nats": loss,
        "loss_error_nats": error,
        "cache_times": bytes_,
        "decode_times": time,
    }


def _number(costs: Costs, key: str) -> float:
    return float(costs[key] or 0.0)


def _time(ours: Costs, theirs: Costs) -> float | None:
    mine, other = ours["decode_s"], theirs["decode_s"]
    return other / mine if mine and other else None


def _favoured(ahead: dict[str, list[str]]) -> str:
    if ahead["ours"] and ahead["theirs"]:
        return "neither"
    return "ours" if ahead["ours"] else "theirs" if ahead["theirs"] else "cannot tell"


def _says(ahead: dict[str, list[str]], inside: list[str]) -> str:
    same = f"; inside its error: {', '.join(inside)}" if inside else ""
    parts = [f"{side}: {', '.join(gains)}" for side, gains in ahead.items() if gains]
    if not parts:
        return f"nothing that differs is larger than its error ({', '.join(inside)})"
    return "; ".join(parts) + same
