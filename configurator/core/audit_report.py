"""An audit's answer: plain values under the names that scripts rely on. Bytes are exact."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from configurator.core.case import Case
from configurator.core.report import RuleReport

__all__ = ["Audit", "GroupRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group of equal layers: what it keeps and what it holds, for the batch and context asked.

    ``tokens`` are those one layer of the group keeps for one sequence, whole pages counted.
    """

    layers: int
    kind: str
    projection: str | None
    n_heads: int | None
    n_kv_heads: int | None
    d_head: int | None
    v_head_dim: int | None
    scope: str
    window: int
    tokens: int
    kv_bytes_per_token: int
    kv_bytes_at_context: int
    state_bytes: int
    params: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a model's cache and parameters really are.

    Lists hold one entry for each layer that keeps a cache where layers differ, or one for each
    rank (``..._per_rank``). ``None`` means unknown or not applicable, never zero; ``to_dict``
    leaves such keys out where a report need not have them.
    """

    model_type: str
    known: bool
    projection: str
    n_heads: Any
    n_kv_heads: Any
    d_head: Any
    v_head_dim: Any
    d_model: int
    vocab_size: int | None
    tied_embeddings: bool
    kv_layers: int
    total_layers: int
    max_positions: int | None
    kv_dtype: str
    cache_mode: str | None
    context: int
    batch: int
    page_size: int
    tensor_parallel: int
    tensor_parallel_allowed: bool
    kv_bytes_per_token: int
    kv_bytes_per_token_past_window: int
    kv_bytes_at_context: int
    kv_bytes_at_context_by_kind: dict[str, int]
    kv_bytes_if_windowed_layers_reserved_full: int | None
    kv_fixed_bytes_per_sequence: dict[str, int]
    fixed_state_per_sequence: dict[str, Any] | None
    kv_bytes_per_token_per_rank: list[int] | None
    kv_bytes_per_rank: list[int] | None
    valid_tp: dict[str, Any]
    tp_verdicts: dict[str, str]
    params_total: int | None
    params_active_per_token: int | None
    params_without_embedding: int | None
    attention_params_total: int | None
    attention_params_per_layer: Any
    qkv_width: Any
    decode_flops_per_cached_token_per_layer: Any
    bytes_per_block: int
    blocks: int | None
    kv_budget_bytes: int | None
    weights_bytes: int | None
    weight_dtype: str
    max_context: int | None
    max_batch: int | None
    fits: bool | None
    request: dict[str, Any]
    target: str | None
    layer_groups: tuple[GroupRow, ...]
    warnings: tuple[str, ...]
    vision_tower_heads: int | None = None
    audio_tower_heads: int | None = None
    rules: tuple[RuleReport, ...] = ()
    case: Case | None = None

    @property
    def answer_is_no(self) -> bool:
        """The rank count asked is not allowed, or what was asked does not fit."""
        return not self.tensor_parallel_allowed or self.fits is False

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON holds it, under the names of the contract."""
        found: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "case" or (value is None and item.name not in _REQUIRED):
                continue
            if item.name in ("layer_groups", "rules"):
                value = [{f.name: getattr(row, f.name) for f in fields(row)} for row in value]
            found[item.name] = list(value) if isinstance(value, tuple) else value
        return found


_REQUIRED = frozenset(
    {"projection", "n_heads", "n_kv_heads", "d_head", "params_total", "params_active_per_token",
     "max_context", "max_batch", "kv_bytes_per_rank", "kv_bytes_per_token_per_rank", "fits"}
)  # fmt: skip
