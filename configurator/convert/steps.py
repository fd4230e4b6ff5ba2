"""How a conversion is done, and what the published figures do not cover."""

from __future__ import annotations

from configurator.convert.change import Change
from configurator.core import cost
from configurator.core.case import Case
from configurator.core.units import format_count

__all__ = ["cautions", "steps"]


def steps(case: Case, change: Change) -> tuple[str, ...]:
    """The recipe in order, with the evidence that each step rests on."""
    a = case.attention
    heads = change.option.recommendation
    if change.name == "MLA":
        return (
            "Keep the rotary embedding only on the dimensions that matter most to the scores, "
            "and drop it from the rest of queries and keys (evidence ji-2025-mha2mla).",
            f"Factorise keys and values of all heads jointly by singular values to rank "
            f"{heads.kv_lora_rank}, with a rotary key of {heads.qk_rope_head_dim} shared by the "
            "heads.",
            "Fine-tune on 0.3 to 0.6 % of the original training tokens: "
            f"{_tokens(change)} where those were 20 a parameter.",
        )
    group = int(a.kv_heads) // heads.n_kv_heads
    return (
        f"Align the {group} heads of each group before they are merged: rotate keys and values of "
        "each onto the first on a calibration text (rotary pairs as pairs), and undo the rotation "
        "in queries and output (evidence jin-2024-align).",
        f"Average the key and value projections of each group of {group}; set num_key_value_heads "
        f"to {heads.n_kv_heads}.",
        "Continue pre-training on about 5 % of the original tokens; 10 % adds little (evidence "
        f"ainslie-2023): {_tokens(change)} where those were 20 a parameter.",
    )


def _tokens(change: Change) -> str:
    low, high = change.trained_tokens
    count = format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"
    return f"{count} tokens, {change.trained_flops[1]:.1e} FLOPs"


def cautions(case: Case, chosen: Change | None) -> list[str]:
    """What the published figures do not cover."""
    if chosen is None:
        return []
    found = []
    if case.attention.projection != "MHA" and chosen.name != "MLA":
        found.append("published conversions to fewer KV heads start from MHA, this model from GQA")
    if cost.params_total(case.shape) < 2e9:
        found.append(
            "conversions lost more in small models: 1.2 to 4.6 points at 1.7B and below against "
            "0.6 to 1.3 at 7B (evidence ji-2025-mha2mla)"
        )
    return found
