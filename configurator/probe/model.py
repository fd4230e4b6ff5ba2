"""The model that probe and studies train: embedding, pre-norm layers of attention, a head.

Letters in tensor names: B rows, S tokens, D width of the residual stream, V alphabet.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from configurator.attention.cache import Cache
from configurator.attention.gqa import GroupedQueryAttention
from configurator.attention.mla import LatentAttention
from configurator.core.kinds.mla import Latent
from configurator.probe.shrink import Geometry

__all__ = ["EMBEDDING_STD", "MOST_SEED", "Layer", "TinyModel", "build"]

EMBEDDING_STD = 0.3
MOST_SEED = 2**32 - 1
"""The largest seed that every generator here takes."""


class Layer(nn.Module):
    """``x + attention(norm(x))``, and a feed-forward after it where one is asked for."""

    def __init__(self, attention: Geometry, d_ff: int = 0) -> None:
        super().__init__()
        d_model = attention.d_model
        self.attention_norm = nn.RMSNorm(d_model)
        self.attention: nn.Module = (
            LatentAttention(attention)
            if isinstance(attention, Latent)
            else GroupedQueryAttention(attention)
        )
        self.feed_forward = (
            nn.Sequential(
                nn.RMSNorm(d_model),
                nn.Linear(d_model, d_ff, bias=False),
                nn.GELU(),
                nn.Linear(d_ff, d_model, bias=False),
            )
            if d_ff
            else None
        )

    def forward(self, x_BSD: Tensor, cache: Cache | None = None) -> Tensor:  # noqa: D102
        x_BSD = x_BSD + self.attention(self.attention_norm(x_BSD), cache=cache)
        return x_BSD if self.feed_forward is None else x_BSD + self.feed_forward(x_BSD)


class TinyModel(nn.Module):
    """Tokens (B, S) to logits (B, S, V). Position enters by the rotation inside attention."""

    def __init__(self, attention: Geometry, *, layers: int, vocab_size: int, d_ff: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, attention.d_model)
        self.layers = nn.ModuleList(Layer(attention, d_ff) for _ in range(layers))
        self.norm = nn.RMSNorm(attention.d_model)
        self.head = nn.Linear(attention.d_model, vocab_size, bias=False)
        # Xavier for the layers. With embeddings of GPT-2's 0.02 the same tasks took twice the steps
        # or were not learned within 500: the layers' outputs drown the tokens from the start.
        for module in self.layers.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=EMBEDDING_STD)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, tokens_BS: Tensor) -> Tensor:  # noqa: D102
        x_BSD = self.embedding(tokens_BS)
        for layer in self.layers:
            x_BSD = layer(x_BSD)
        logits_BSV: Tensor = self.head(self.norm(x_BSD))
        return logits_BSV


def build(
    attention: Geometry,
    *,
    layers: int,
    vocab_size: int,
    d_ff: int = 0,
    seed: int = 0,
    device: str = "cpu",
) -> TinyModel:
    """A fresh model whose weights depend on the seed alone, whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TinyModel(attention, layers=layers, vocab_size=vocab_size, d_ff=d_ff)
    return model.to(device)
