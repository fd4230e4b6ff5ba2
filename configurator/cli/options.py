"""Options that several commands share, each defined once, so that a name means one thing.

A command takes single options (``context: Context = None``) or whole groups through
:func:`takes`, which hands it the values that were given, by field name. Defaults are not here:
they live with the request, and the help only quotes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import typer

__all__ = [
    "ANSWER",
    "CUSTOM_TARGET",
    "GEOMETRY",
    "LONG_RUN",
    "QUESTION",
    "SHAPE",
    "TARGET",
    "Format",
    "Given",
    "Output",
    "takes",
]

Given: TypeAlias = dict[str, Any]


def _option(flag: str, metavar: str, panel: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, rich_help_panel=panel, help=help)


def _number(flag: str, metavar: str, panel: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, rich_help_panel=panel, help=help, parser=_whole)


def _whole(text: Any) -> int:
    """A whole number; the error shows what was given, which typer's own leaves out."""
    try:
        return int(str(text))
    except ValueError:
        raise typer.BadParameter(f"{str(text)[:40]!r} is not a whole number") from None


_Q, _S, _G, _T, _A, _L = "Question", "Shape", "Geometry", "Target", "Answer", "Long runs"

Params = Annotated[
    str | None,
    _option("--params", "SIZE", _Q, "Parameter budget, in powers of ten: 350M, 7B, 1.3e9."),
]
ActiveParams = Annotated[
    str | None,
    _option(
        "--active-params", "SIZE", _Q, "Parameters a token goes through: a mixture of experts."
    ),
]
Context = Annotated[
    str | None,
    _option("--context", "TOKENS", _Q, "Tokens kept: 8192, 32k (k = 1,024), 1M (1,048,576)."),
]
Batch = Annotated[
    int | None,
    _number("--batch", "N", _Q, "Sequences in flight over the whole target (default 1)."),
]
Priority = Annotated[
    str | None,
    _option("--priority", "WHAT", _Q, "balanced (default), quality, latency, memory or training."),
]
Arch = Annotated[
    str | None,
    _option("--arch", "KIND", _Q, "decoder (default), encoder or encoder-decoder."),
]
SourceLen = Annotated[
    str | None,
    _option("--source-len", "TOKENS", _Q, "Source tokens of an encoder-decoder (k = 1,024)."),
]
Benchmarking = Annotated[
    bool | None,
    typer.Option(
        "--benchmarking",
        rich_help_panel=_Q,
        help="Allow what is for measuring only: MLA below one billion parameters.",
    ),
]

DModel = Annotated[int | None, _number("--d-model", "N", _S, "Width of the residual stream.")]
NLayers = Annotated[int | None, _number("--n-layers", "N", _S, "Layers.")]
VocabSize = Annotated[
    int | None,
    _number(
        "--vocab-size", "N", _S,
        "Rows of the embedding (default 50304 below 1B parameters, else 100352).",
    ),
]  # fmt: skip
TieEmbeddings = Annotated[
    bool | None,
    typer.Option(
        "--tie-embeddings/--untie-embeddings",
        rich_help_panel=_S,
        help="Output head shared with the embedding (default: tied below 4B).",
    ),
]
WeightDtype = Annotated[
    str | None, _option("--weight-dtype", "DTYPE", _S, "Weights: bf16 (default), fp16, fp8, int4.")
]
KvDtype = Annotated[
    str | None,
    _option("--kv-dtype", "DTYPE", _S, "Cache: bf16 (default), fp8, q8_0, or k=q8_0,v=q4_0."),
]
DHead = Annotated[
    str | None,
    _option("--d-head", "N[,N]", _S, "Head widths to consider (default 64,128); one for a check."),
]
Projection = Annotated[
    str | None,
    _option("--projection", "NAME[,NAME]", _S, "Only these: mha, gqa, mqa, mla."),
]
AllowDecoupledHeads = Annotated[
    bool | None,
    typer.Option(
        "--allow-decoupled-heads",
        rich_help_panel=_S,
        help="Let n_heads * d_head differ from d_model.",
    ),
]
Window = Annotated[
    str | None,
    _option("--window", "TOKENS", _S, "Sliding window of the local layers (k = 1,024)."),
]
FullEvery = Annotated[
    int | None,
    _number(
        "--full-every", "N", _S, "Every N-th layer keeps the whole context; 0 (default): none does."
    ),
]

NHeads = Annotated[int | None, _number("--n-heads", "N", _G, "Query heads.")]
NKvHeads = Annotated[
    int | None,
    _number("--n-kv-heads", "N", _G, "Key/value heads (default: as many as query heads)."),
]
KvLoraRank = Annotated[
    int | None, _number("--kv-lora-rank", "N", _G, "Rank of MLA's cached latent; makes it MLA.")
]
QLoraRank = Annotated[
    int | None, _number("--q-lora-rank", "N", _G, "Rank of MLA's query latent; 0: none.")
]
QkNopeHeadDim = Annotated[
    int | None, _number("--qk-nope-head-dim", "N", _G, "MLA: key width without position.")
]
QkRopeHeadDim = Annotated[
    int | None, _number("--qk-rope-head-dim", "N", _G, "MLA: width of the shared rotary key.")
]
VHeadDim = Annotated[int | None, _number("--v-head-dim", "N", _G, "Width of one value head.")]
DFf = Annotated[int | None, _number("--d-ff", "N", _G, "Hidden width of the gated feed-forward.")]

Target = Annotated[
    str | None,
    _option(
        "--target", "NAME", _T,
        "Device: a catalog name or alias (h100-sxm), 4xh100-sxm, host, or a TOML file.",
    ),
]  # fmt: skip
TensorParallel = Annotated[
    int | None,
    _number("--tensor-parallel", "N", _T, "Ranks that share the heads (default: all devices)."),
]
PageSize = Annotated[
    int | None,
    _number("--page-size", "TOKENS", _T, "Cache page that a server rounds up to (default 1)."),
]
Memory = Annotated[
    str | None,
    _option("--memory", "BYTES", _T, "Memory of one device: 24GiB (2^30) or 24GB (10^9)."),
]
Bandwidth = Annotated[
    str | None, _option("--bandwidth", "RATE", _T, "Memory bandwidth of one device: 1000GB/s.")
]
Tflops = Annotated[
    str | None, _option("--tflops", "RATE", _T, "Dense bf16 TFLOP/s of one device: 165.")
]

Top = Annotated[int | None, _number("--top", "N", _A, "Alternatives to list (default 5).")]
Format = Annotated[
    str | None,
    _option(
        "--format", "NAME", _A,
        "terminal, markdown, json or html (default: by the file's suffix, else terminal).",
    ),
]  # fmt: skip
Output = Annotated[
    str | None, _option("--output", "FILE", _A, "Write here, whole or not at all, not to stdout.")
]

On = Annotated[str | None, _option("--on", "WHERE", _L, "Where to run: local, or ray://HOST:PORT.")]
Shard = Annotated[
    str | None, _option("--shard", "I/N", _L, "Run only the I-th of N shares, such as 3/16.")
]
Budget = Annotated[
    str | None, _option("--budget", "TIME", _L, "Stop after this long: 60s, 2min, 1h.")
]
Resume = Annotated[
    str | None, _option("--resume", "FILE", _L, "Rows already finished; new ones are appended.")
]

QUESTION: Mapping[str, Any] = {
    "params": Params, "active_params": ActiveParams, "context": Context, "batch": Batch,
    "priority": Priority, "arch": Arch, "source_len": SourceLen, "benchmarking": Benchmarking,
}  # fmt: skip
SHAPE: Mapping[str, Any] = {
    "d_model": DModel, "n_layers": NLayers, "vocab_size": VocabSize,
    "tie_embeddings": TieEmbeddings, "d_head": DHead, "projection": Projection,
    "allow_decoupled_heads": AllowDecoupledHeads, "window": Window, "full_every": FullEvery,
    "weight_dtype": WeightDtype, "kv_dtype": KvDtype,
}  # fmt: skip
GEOMETRY: Mapping[str, Any] = {
    "n_heads": NHeads, "n_kv_heads": NKvHeads, "kv_lora_rank": KvLoraRank,
    "q_lora_rank": QLoraRank, "qk_nope_head_dim": QkNopeHeadDim,
    "qk_rope_head_dim": QkRopeHeadDim, "v_head_dim": VHeadDim, "d_ff": DFf,
}  # fmt: skip
CUSTOM_TARGET: Mapping[str, Any] = {"memory": Memory, "bandwidth": Bandwidth, "tflops": Tflops}
TARGET: Mapping[str, Any] = {
    "target": Target, "tensor_parallel": TensorParallel, "page_size": PageSize, **CUSTOM_TARGET,
}  # fmt: skip
ANSWER: Mapping[str, Any] = {"format": Format, "output": Output}
LONG_RUN: Mapping[str, Any] = {"on": On, "shard": Shard, "budget": Budget, "resume": Resume}


def takes(*groups: Mapping[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command every option of ``groups``; it receives those that were set as ``given``.

    The command is written ``def check(given: Given, format: Format = None)``: its other
    parameters stay its own and come first in the help.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True)
        shared = {name: option for group in groups for name, option in group.items()}
        parameters = [p for name, p in own.parameters.items() if name != "given"]
        shared = {k: v for k, v in shared.items() if k not in own.parameters}
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(name, keyword, default=None, annotation=option)
            for name, option in shared.items()
        ]

        def run(**values: Any) -> Any:
            given = {name: values.pop(name) for name in shared}
            return command({k: v for k, v in given.items() if v is not None}, **values)

        run.__name__, run.__doc__, run.__module__ = (
            command.__name__,
            command.__doc__,
            command.__module__,
        )
        run.__signature__ = own.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
        return run

    return decorate
