"""Which rank counts an attention allows, and why not the others.

The rule is that of the common servers: ranks divide the query heads, and either divide the KV
heads or are a multiple of them, in which case each KV head is copied. A latent is copied whole.
Feed-forward widths, vocabularies and vision towers can narrow the list further.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from configurator.core.kinds import Attention
from configurator.core.kinds.mla import Latent

__all__ = ["MOST_RANKS", "RankRule", "rank_rule"]

MOST_RANKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRule:
    """The head counts that ranks must fit: pairs of query and KV heads, and latents' heads.

    ``where`` is appended to a refusal: the key that holds the heads, where it is nested.
    """

    pairs: tuple[tuple[int, int], ...]
    latent_heads: tuple[int, ...] = ()
    where: str = ""
    rebuilt: bool = False

    @property
    def is_latent(self) -> bool:
        """Whether every attention keeps a latent."""
        return bool(self.latent_heads) and not self.pairs

    def allows(self, ranks: int, *, copies: bool = True) -> bool:
        """Whether ``ranks`` fit; with ``copies`` KV heads may be held more than once."""
        if any(heads % ranks for heads in self.latent_heads):
            return False
        return all(
            heads % ranks == 0 and (kv % ranks == 0 or (copies and ranks % kv == 0))
            for heads, kv in self.pairs
        )

    def verdict(self, ranks: int) -> str:
        """One sentence: allowed, allowed with copies, or refused and why."""
        for heads in [h for h, _ in self.pairs] + list(self.latent_heads):
            if heads % ranks:
                return f"refused: {heads} query heads are not a multiple of {ranks}{self.where}"
        for _, kv in self.pairs:
            if kv % ranks and ranks % kv:
                return f"refused: {kv} KV heads and {ranks} ranks do not divide either way"
        fewest = min((kv for _, kv in self.pairs), default=ranks)
        if ranks > fewest:
            return f"allowed with each KV head copied on {ranks // fewest} ranks"
        if self.latent_heads and not self.rebuilt and ranks > 1:
            return "allowed: heads are split, every rank holds the whole latent"
        return "allowed"

    def counts(self, *, copies: bool) -> list[int]:
        """The rank counts from 1 to 16 that fit."""
        return [n for n in range(1, MOST_RANKS + 1) if self.allows(n, copies=copies)]

    def valid(self) -> dict[str, list[int] | str]:
        """The lists that a report gives: by heads for latents, else with and without copies."""
        if self.is_latent:
            kept = "replicated on every rank"
            if self.rebuilt:
                kept = "not kept: rebuilt keys and values are split with the heads"
            return {"head_split": self.counts(copies=True), "latent_cache": kept}
        if not self.pairs:
            return {}
        return {
            "sharded": self.counts(copies=False),
            "with_kv_replication": self.counts(copies=True),
        }

    def verdicts(self, asked: Sequence[int] = ()) -> dict[str, str]:
        """The verdict on every count from 1 to 16 and on those asked for."""
        counts = sorted({*range(1, MOST_RANKS + 1), *asked})
        return {str(n): self.verdict(n) for n in counts}


def rank_rule(attentions: Iterable[Attention], *, key: str = "") -> RankRule:
    """The rule for a model with these attentions; ``key`` is named where it is nested."""
    pairs: dict[tuple[int, int], None] = {}
    latent: dict[int, None] = {}
    rebuilt = False
    for attention in attentions:
        if isinstance(attention, Latent):
            latent[int(attention.n_heads)] = None
            rebuilt = rebuilt or attention.rebuilt
        else:
            pairs[int(attention.n_heads), int(attention.kv_heads)] = None
    return RankRule(
        pairs=tuple(pairs),
        latent_heads=tuple(latent),
        where=f" ({key})" if "." in key else "",
        rebuilt=rebuilt,
    )
