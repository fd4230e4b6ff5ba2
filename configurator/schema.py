"""The one door for untrusted requests: what a user may ask, parsed, bounded and echoed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from configurator.core.dtypes import cache_type, dtype
from configurator.core.errors import UsageError, show
from configurator.core.report import Report
from configurator.core.units import (
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    parse_params,
    parse_tokens,
)

__all__ = ["GeometryRequest", "Request", "rate_text", "report_schema", "request_schema"]

PRIORITIES = ("balanced", "quality", "latency", "memory", "training")
PROJECTIONS = ("mha", "gqa", "mqa", "mla")
_HEAD_WIDTHS = (32, 64, 80, 96, 112, 128, 160, 192, 256)

Params = Annotated[int, BeforeValidator(lambda v: parse_params(v, "params"))]
ActiveParams = Annotated[int, BeforeValidator(lambda v: parse_params(v, "active-params"))]
Tokens = Annotated[int, BeforeValidator(lambda v: parse_tokens(v, "context"))]
SourceTokens = Annotated[int, BeforeValidator(lambda v: parse_tokens(v, "source-len"))]
WindowTokens = Annotated[int, BeforeValidator(lambda v: parse_tokens(v, "window"))]
Bytes = Annotated[int, BeforeValidator(lambda v: parse_bytes(v, "memory"))]
Bandwidth = Annotated[float, BeforeValidator(lambda v: parse_bandwidth(v, "bandwidth"))]
Flops = Annotated[float, BeforeValidator(lambda v: parse_flops(v, "tflops"))]


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    return value


def _names(value: Any) -> Any:
    listed = _listed(value)
    if not isinstance(listed, list | tuple):
        return listed
    return [part.lower() if isinstance(part, str) else part for part in listed]


def rate_text(name: str, value: float) -> str:
    """``bandwidth`` or ``tflops`` in SI units as it is typed: a bare number would mean GB/s."""
    return f"{value / 1e9:.12g}GB/s" if name == "bandwidth" else f"{value / 1e12:.12g}"


class _Base(BaseModel):
    """What every request shares: the work and the target."""

    # Built when first used: a command needs one of the three models.
    model_config = ConfigDict(frozen=True, extra="forbid", str_max_length=400, defer_build=True)

    context: Tokens = Field(8192, le=2**31, description="tokens; 32k is 32,768")
    batch: int = Field(1, ge=1, le=10**6, description="sequences in flight over the whole target")
    target: str | None = Field(None, description="device name, alias, 4xNAME, host or a TOML file")
    weight_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    tensor_parallel: int | None = Field(None, ge=1, le=4096)
    page_size: int = Field(1, ge=1, le=4096)
    source_len: SourceTokens | None = Field(None, le=2**31)
    priority: Literal["balanced", "quality", "latency", "memory", "training"] = "balanced"
    arch: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    benchmarking: bool = False
    window: WindowTokens | None = Field(None, le=2**31, description="tokens a windowed layer keeps")
    full_every: int | None = Field(
        None, ge=0, le=1000, description="every n-th layer keeps all; 0: none"
    )
    memory: Bytes | None = Field(None, ge=2**20, le=10**16)
    bandwidth: Bandwidth | None = Field(None, ge=1e6, le=1e17)
    tflops: Flops | None = Field(None, ge=1e6, le=1e20)

    @model_validator(mode="after")
    def _consistent(self) -> _Base:
        cache_type(self.kv_dtype)
        dtype(self.weight_dtype, "weight-dtype")
        if self.target is not None and not self.target.strip():
            raise UsageError("target '' is empty; name one (see `mha-configurator targets`)")
        if self.full_every is not None and self.window is None:
            raise UsageError(
                f"full-every {self.full_every} needs a window; add --window 4096, or leave it out"
            )
        if self.arch == "encoder-decoder" and self.window is not None:
            raise UsageError("window is for decoders; an encoder-decoder here is without")
        if self.source_len is not None and self.arch != "encoder-decoder":
            raise UsageError(
                f"source-len {self.source_len} needs --arch encoder-decoder; arch is {self.arch}"
            )
        return self

    def given(self) -> dict[str, Any]:
        """The fields that are set, as plain values that make the same request again."""
        said = {k: v for k, v in self.model_dump(mode="json").items() if v is not None}
        return said | {k: rate_text(k, said[k]) for k in ("bandwidth", "tflops") if k in said}


class Request(_Base):
    """A question for ``recommend``: a budget, a length and a target, and what is already fixed.

    Sizes are numbers or text as people type them: ``params`` and ``active_params`` in powers of
    ten (``7B``), ``context``, ``source_len`` and ``window`` in tokens (``32k`` is 32,768),
    ``memory`` in bytes (``24GiB``), ``bandwidth`` as a rate (``1000GB/s``), ``tflops`` dense.
    ``d_head`` and ``projection`` list what may be chosen; ``None`` leaves a field to the advisor.

    Raises:
        UsageError: a value out of range, or two that contradict each other, in one line.
    """

    params: Params = Field(ge=10**6, le=10**14, description="total parameters; 7B is 7 x 10^9")
    active_params: ActiveParams | None = Field(None, ge=10**6, le=10**14)
    d_model: int | None = Field(None, ge=64, le=131072)
    n_layers: int | None = Field(None, ge=1, le=2000)
    vocab_size: int | None = Field(None, ge=2, le=10**7)
    tie_embeddings: bool | None = None
    d_head: Annotated[tuple[int, ...] | None, BeforeValidator(_listed)] = None
    projection: Annotated[
        tuple[Literal["mha", "gqa", "mqa", "mla"], ...] | None,
        BeforeValidator(_names),
    ] = None
    allow_decoupled_heads: bool = False
    top: int = Field(5, ge=1, le=100)

    def __init__(self, **data: Any) -> None:
        _checked(super().__init__, data)

    @model_validator(mode="after")
    def _possible(self) -> Request:
        for width in self.d_head or ():
            if width < 32:
                raise UsageError(
                    f"d-head {show(width)} is below 32, where heads lose quality; use 64 or 128"
                )
            if width > 512 or width % 8:
                raise UsageError(
                    f"d-head {show(width)} has no kernel; use 64 or 128, or one of "
                    f"{', '.join(map(str, _HEAD_WIDTHS))}"
                )
        if self.d_head is not None and not self.d_head:
            raise UsageError("d-head is empty; write 64, 128 or 64,128")
        if self.projection is not None and not self.projection:
            raise UsageError("projection is empty; write any of mha,gqa,mqa,mla")
        if self.active_params is not None and self.active_params >= self.params:
            raise UsageError(
                f"active-params {self.active_params:,} must be below params {self.params:,}; "
                "leave it out for a dense model"
            )
        if self.active_params is not None and self.arch != "decoder":
            raise UsageError(f"active-params is for decoders; arch is {self.arch}")
        widths, coupled = self.d_head or (), not self.allow_decoupled_heads
        if self.d_model and coupled and widths and all(self.d_model % w for w in widths):
            raise UsageError(
                f"d-model {self.d_model} is not a multiple of d-head "
                f"{' or '.join(map(str, widths))}; change one of them, or add "
                "--allow-decoupled-heads"
            )
        return self


class GeometryRequest(_Base):
    """A geometry given by hand, for ``check``, ``compare``, ``bench`` and ``export``.

    ``d_model`` and ``n_heads`` are needed; ``n_kv_heads`` defaults to ``n_heads``, ``d_head`` to
    ``d_model / n_heads``; a ``kv_lora_rank`` makes it MLA. Depth, feed-forward and vocabulary
    take usual values where they are missing, and the answer says which.

    Raises:
        UsageError: a value out of range, or two that contradict each other, in one line.
    """

    d_model: int = Field(ge=1, le=131072)
    n_heads: int = Field(ge=1, le=8192)
    n_kv_heads: int | None = Field(None, ge=1, le=8192)
    d_head: int | None = Field(None, ge=1, le=8192)
    n_layers: int | None = Field(None, ge=1, le=2000)
    kv_lora_rank: int | None = Field(None, ge=1, le=65536)
    q_lora_rank: int | None = Field(None, ge=0, le=65536)  # 0: none
    qk_nope_head_dim: int | None = Field(None, ge=1, le=4096)
    qk_rope_head_dim: int | None = Field(None, ge=1, le=4096)
    v_head_dim: int | None = Field(None, ge=1, le=4096)
    d_ff: int | None = Field(None, ge=1, le=10**6)
    vocab_size: int | None = Field(None, ge=2, le=10**7)
    tie_embeddings: bool | None = None
    allow_decoupled_heads: bool = True

    def __init__(self, **data: Any) -> None:
        _checked(super().__init__, data)

    @model_validator(mode="after")
    def _possible(self) -> GeometryRequest:
        heads, kv = self.n_heads, self.n_kv_heads
        if self.kv_lora_rank is None:
            for name in ("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"):
                if getattr(self, name) is not None:
                    flag = name.replace("_", "-")
                    raise UsageError(f"{flag} belongs to MLA; add --kv-lora-rank, or leave it out")
            if self.d_head is None and self.d_model % heads:
                raise UsageError(
                    f"d-model {self.d_model} is not a multiple of n-heads {heads}; "
                    "give --d-head, or change one of them"
                )
            if kv is not None and kv > heads:
                raise UsageError(
                    f"n-kv-heads {kv} is above n-heads {heads}; it must divide n-heads"
                )
        return self


def _checked(build: Any, data: dict[str, Any]) -> None:
    """Run pydantic's validation and turn its report into one ``UsageError``."""
    try:
        build(**data)
    except ValidationError as error:
        raise UsageError(_one_line(error)) from None


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UsageError):
        return str(cause)
    name = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
    name = name.replace("_", "-")[:60]
    given = show(first.get("input"))
    kind, limits = first["type"], first.get("ctx", {})
    if kind == "missing":
        return f"{name} is missing; give --{name}"
    if kind == "extra_forbidden":
        return f"unknown argument {name!r}; see --help for what is allowed"
    if kind == "literal_error":
        return f"{name} {given} is not known; use {limits.get('expected')}"
    bounds = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
    if kind in bounds:
        words, key = bounds[kind]
        limit = limits[key]
        return f"{name} {given} must be {words} {limit:,.15g}; change it"
    return f"{name} {given} is not valid: {str(first['msg']).lower()}"


def request_schema() -> dict[str, Any]:
    """JSON schema of a request, as ``outputs/request.schema.json`` holds it."""
    return Request.model_json_schema()


def report_schema() -> dict[str, Any]:
    """JSON schema of a report, as ``outputs/report.schema.json`` holds it."""
    return TypeAdapter(Report).json_schema()
