"""What was asked and is not honoured: a warning each, never silence."""

from __future__ import annotations

from configurator.budget import Frame
from configurator.core.case import Device, ModelShape
from configurator.schema import GeometryRequest, Request
from configurator.search import LATENT_SETS

__all__ = ["nothing_possible", "unhonoured", "unused"]

_DECOUPLED_HINT = (
    "several published decoders of this width decouple heads from the width; "
    "--allow-decoupled-heads lets the advisor do so"
)


def unhonoured(
    request: Request, shape: ModelShape, asked: tuple[str, ...], device: Device | None
) -> list[str]:
    """Warnings of one recommendation: what was left out, what is unverified, what to allow.

    ``asked`` are the projections that were chosen from.
    """
    said = unused(request, shape)
    if shape.arch == "encoder" and request.tie_embeddings is False:
        said.append("an encoder has no output head: --untie-embeddings was not used")
    if shape.arch != "decoder" and "MLA" in asked and request.projection:
        said.append("MLA is for decoders here and was left out")
    odd = [w for w in request.d_head or () if shape.d_model % w]
    if odd and not request.allow_decoupled_heads:
        said.append(
            f"d-head {', '.join(map(str, odd))} does not divide d-model {shape.d_model} and was "
            "left out; --allow-decoupled-heads keeps it"
        )
    if shape.arch == "decoder" and shape.d_model == 1024 and not request.allow_decoupled_heads:
        said.append(_DECOUPLED_HINT)
    if device is not None and not device.verified:
        said.append(f"the figures of {device.name} were not verified at a source")
    return said


def unused(request: Request | GeometryRequest, shape: ModelShape) -> list[str]:
    """What was asked and changes nothing in this model; a warning each."""
    said = []
    if request.window and shape.arch != "decoder":
        said.append("the window is for decoders and was not used")
    elif request.window and request.window >= request.context:
        said.append(
            f"a window of {request.window:,} tokens is not below the context of "
            f"{request.context:,}: it changes nothing"
        )
    if request.full_every == 1:
        said.append("full-every 1 lets every layer keep the whole context: no window is used")
    if request.full_every and request.full_every > shape.n_layers:
        said.append(
            f"full-every {request.full_every} is above {shape.n_layers} layers: no layer keeps "
            "the whole context"
        )
    if shape.arch == "encoder" and request.kv_dtype != "bf16":
        said.append(f"an encoder keeps no cache: kv-dtype {request.kv_dtype} was not used")
    if shape.arch == "encoder" and request.page_size > 1:
        said.append(f"an encoder keeps no cache: page-size {request.page_size} was not used")
    return said


def nothing_possible(request: Request, frame: Frame) -> str:
    """Why a request leaves no candidate at all, and what to change."""
    if frame.arch != "decoder" and request.projection == ("mla",):
        return f"projection mla is for decoders here; arch is {frame.arch}: use mha, gqa or mqa"
    kinds = ",".join(request.projection or ("any",))
    widths = request.d_head or (64, 128)
    if request.projection == ("mla",) and not set(widths) & {s[0] for s in LATENT_SETS}:
        usual = " or ".join(sorted({str(s[0]) for s in LATENT_SETS}, reverse=True))
        return (
            f"no geometry is possible: MLA has kernels for heads of {usual}, not of "
            f"{', '.join(map(str, widths))}; name one of them, or another --projection"
        )
    fitting = [w for w in widths if frame.d_model % w == 0]
    if fitting and not request.allow_decoupled_heads:
        heads = " or ".join(f"{frame.d_model // w} heads of {w}" for w in fitting)
        return (
            f"no geometry is possible: d-model {frame.d_model} means {heads}, whose divisors "
            f"allow no {kinds}; name another --projection or --d-model, or add "
            "--allow-decoupled-heads"
        )
    listed = ",".join(map(str, widths))
    return (
        f"no geometry is possible: d-model {frame.d_model} with d-head {listed} and projection "
        f"{kinds}; d-model must be a multiple of d-head, or add --allow-decoupled-heads"
    )
