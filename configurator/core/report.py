"""What the layers hand one another: plain values, ready to be rendered or written as JSON.

Units are in the names: ``_bytes``, ``_s``, ``_nats``. ``None`` means unknown or not applicable,
never zero. The JSON keys are the field names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CacheReport",
    "FeedForwardReport",
    "Initialization",
    "LatencyReport",
    "Measurement",
    "MemoryReport",
    "Option",
    "Precedent",
    "QualityReport",
    "Recommendation",
    "Report",
    "RuleReport",
    "Sensitivity",
    "TestHook",
    "TrainingReport",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardReport:
    """A block's feed-forward; ``d_ff`` is one expert's width in a mixture."""

    kind: str
    d_ff: int
    gated: bool = True
    n_experts: int = 0
    experts_per_token: int = 0
    shared_d_ff: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One geometry inside a full model shape. MLA's ranks are 0 for the other projections."""

    projection: str
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_model: int
    n_layers: int
    d_ff: int
    feed_forward: FeedForwardReport
    vocab_size: int
    tied_embeddings: bool
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    bias: str = "none"
    qk_norm: bool = False
    window: int = 0
    full_every: int = 0
    arch: str = "decoder"
    params_total: int = 0
    params_active: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """The logical cache of the whole model, counted once, and what fits on the target.

    ``bytes_per_token_per_layer_fp16`` is one layer that caches. ``max_context`` and ``max_batch``
    are ``None`` where no target was named or memory sets no limit. ``rank_bytes`` is what one
    rank holds for the batch, copies included.
    """

    bytes_per_token_per_layer_fp16: int
    bytes_per_token: int
    bytes_total: int
    fits: bool | None
    max_context: int | None
    max_batch: int | None
    kv_dtype: str
    bytes_per_token_past_window: int = 0
    bytes_per_sequence: int = 0
    rank_bytes: int = 0
    self_attention_bytes: int = 0
    cross_attention_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """Bytes summed over the target's devices, copies included.

    ``reserve_bytes`` and ``capacity_bytes`` are ``None`` where no target was named.
    """

    weights_bytes: int
    cache_bytes: int
    reserve_bytes: int | None
    capacity_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyReport:
    """Predicted seconds of one decode step and of one prefill of the whole model.

    ``error`` is the relative half-width to show; ``low`` and ``high`` are multiplicative bounds.
    ``None`` means unknown. ``attention_s`` is the attention's part of the decode step.
    """

    decode_s: float | None
    prefill_s: float | None
    bound: str
    regime: str
    error: float | None
    low: float | None = None
    high: float | None = None
    attention_s: float | None = None
    parts_s: dict[str, float] = field(default_factory=dict)
    measured_class: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """Expected loss penalty against MHA at equal parameters, in nats a token, with its error."""

    penalty_nats: float
    error_nats: float
    cached_width: float
    statement: str
    extrapolated: bool = False
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialization:
    """Standard deviations for the attention's projections, computed for this shape.

    ``kaiming`` has the gain sqrt(2) of a rectifier, ``kaiming_linear`` the gain 1 of a linear map.
    """

    xavier: dict[str, float]
    kaiming: dict[str, float]
    kaiming_linear: dict[str, float]
    residual_scaled: dict[str, float]
    recommended: dict[str, float]
    bias: str
    qk_norm: bool
    advice: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestHook:
    """A synthetic task that a trained two-layer version must solve, and the command to run it."""

    __test__ = False

    task: str
    description: str
    threshold: float
    layers: int
    control: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """What one rule said."""

    id: str
    severity: str
    verdict: str
    message: str
    source: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """A published model near the recommendation: an illustration, not a predictor."""

    id: str
    name: str
    org: str
    year: int
    params_total: int
    projection: str
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_model: int
    n_layers: int
    difference: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """At which value of one input the answer flips, and how far that is from what was asked.

    ``flips_at`` is ``None`` where nothing up to the bounds looked at changes the answer.
    """

    input: str
    asked: int
    direction: str
    flips_at: int | None
    factor: float | None
    to: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured row beside its prediction (``bench`` produces them)."""

    case: str
    formulation: str
    path: str
    phase: str = "decode"
    cache_bytes_predicted: int
    cache_bytes_measured: int | None
    predicted_s: float | None
    measured_s: float | None
    spread_s: float | None
    bytes_per_s: float | None
    share_of_bandwidth: float | None
    status: str
    flags: tuple[str, ...] = ()
    batch: int = 1
    context: int = 0
    projection: str = ""
    device: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What training costs, whole and unsplit: FLOPs per token, activations, states.

    FLOPs are forward and backward; ``recomputed_flops_per_token`` come on top with fused
    attention. ``activation_bytes_per_token`` sums all layers, ``..._per_layer`` is one of the main
    layers by part; ``unfused_bytes_per_token`` is what kernels that keep scores would add.
    ``trades`` says what the priority gives up, with numbers.
    """

    flops_per_token: float
    attention_flops_per_token: float
    score_flops_per_token: float
    recomputed_flops_per_token: float
    attention_share: float
    activation_bytes_per_token: float
    activation_bytes_per_token_per_layer: dict[str, float]
    activation_bytes_per_sequence: float
    unfused_bytes_per_token: float
    states_bytes: int
    trades: tuple[str, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One candidate with all its costs: an alternative, a row of a comparison, a check.

    ``why_not`` says why it was not chosen; ``on_front`` whether no other candidate is at least
    as good in cache, decode time and expected loss.
    """

    label: str
    recommendation: Recommendation
    cache: CacheReport
    memory: MemoryReport
    latency: LatencyReport
    quality: QualityReport
    on_front: bool = False
    why_not: str = ""
    rules_broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A recommendation in full. The rendered forms live in ``configurator.api``.

    ``verification`` says in words what ``measurements`` show, where any were made.
    """

    request: dict[str, Any]
    recommendation: Recommendation
    cache: CacheReport
    memory: MemoryReport
    latency: LatencyReport
    sensitivity: tuple[Sensitivity, ...]
    quality: QualityReport
    initialization: Initialization
    test_hook: TestHook
    alternatives: tuple[Option, ...]
    rules: tuple[RuleReport, ...]
    precedents: tuple[Precedent, ...]
    measurements: tuple[Measurement, ...]
    verification: str = ""
    warnings: tuple[str, ...]
    why: tuple[str, ...]
    target: dict[str, Any]
    fits: bool
    remedies: tuple[str, ...]
    command: str
    version: str
    training: TrainingReport | None = None
