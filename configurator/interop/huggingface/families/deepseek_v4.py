"""DeepSeek-V4: a short window in every layer, and compressed entries of everything before it."""

from __future__ import annotations

from configurator.core.errors import UsageError, show
from configurator.core.kinds.shared_kv import SharedKeyValue
from configurator.core.layers import Scope
from configurator.interop.huggingface.assemble import norm_size
from configurator.interop.huggingface.attention import heads_of
from configurator.interop.huggingface.config import Config
from configurator.interop.huggingface.family import Family, Layer, Mixture
from configurator.interop.huggingface.feed_forward import mixture_of
from configurator.interop.huggingface.rules import flagged
from configurator.interop.huggingface.scopes import WINDOW

__all__ = ["FAMILIES"]

_SPARSE, _HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
_MIXTURE = Mixture(shared="one", shared_bias=flagged("mlp_bias"))  # one, whatever the file counts
_BY_RATIO = {0: WINDOW, 4: _SPARSE, 128: _HEAVY}


def _pattern(config: Config, n: int) -> list[str]:
    """By ``compress_ratios`` (one entry a layer, and one for the extra prediction layer)."""
    ratios = config.wholes("compress_ratios")
    if ratios is None:
        tail = [_SPARSE if i % 2 else _HEAVY for i in range(max(n - 2, 0))]
        return [_HEAVY] * min(n, 2) + tail
    if len(ratios) < n:
        raise UsageError(
            f"{config.named('compress_ratios')} lists {len(ratios)} layers but "
            f"{config.key('num_hidden_layers')} is {n}; they must agree"
        )
    for i, ratio in enumerate(ratios[:n]):
        if ratio not in _BY_RATIO:
            raise UsageError(
                f"{config.named('compress_ratios')}[{i}] is {show(ratio)}; it must be 0, 4 or 128"
            )
    return [_BY_RATIO[ratio] for ratio in ratios[:n]]


def _rate(config: Config, kind: str) -> int:
    rates = config.section("compress_rates")
    stated = rates.maybe(kind) if rates is not None else None
    legacy = "compress_rate_csa" if kind == _SPARSE else "compress_rate_hca"
    return stated or config.count(legacy, 4 if kind == _SPARSE else 128)


def _layer(config: Config, family: Family, i: int, kind: str) -> list[Layer]:
    d, heads = config.count("hidden_size"), heads_of(config, i)
    width, rank = config.count("head_dim", 512), config.count("q_lora_rank", 1024)
    streams = config.count("hc_mult", 4)
    index_heads, index = config.count("index_n_heads", 64), config.count("index_head_dim", 128)
    matrices, other = 0, heads  # one sink a head
    if kind != WINDOW:
        rate, series = _rate(config, kind), 2 if kind == _SPARSE else 1
        matrices += 2 * d * series * width
        other += rate * series * width + width
    if kind == _SPARSE:
        matrices += 2 * d * 2 * index + rank * index_heads * index + d * index_heads
        other += rate * 2 * index + index
    attention = SharedKeyValue(
        d_model=d,
        n_heads=heads,
        d_head=width,
        q_lora_rank=rank,
        o_groups=config.count("o_groups", 8),
        o_lora_rank=config.count("o_lora_rank", 1024),
        gate_params=matrices,
        other_params=other,
    )
    paths = streams * (2 + streams)
    hyper = 2 * (paths * streams * d + paths + 3)
    layers = [
        Layer(
            attention=attention,
            scope=Scope("window", config.count("sliding_window", 128)),
            feed_forward=mixture_of(config, _MIXTURE, i),
            norm_params=2 * norm_size(config, "rms"),
            other_params=hyper,
        )
    ]
    if kind != WINDOW:
        entries = SharedKeyValue(
            d_model=d, n_heads=heads, d_head=width, q_lora_rank=rank, o_groups=1, o_lora_rank=1,
            index_head_dim=index if kind == _SPARSE else 0,
        )  # fmt: skip
        layers.append(
            Layer(
                attention=entries,
                scope=Scope("compressed", rate),
                weights=False,
                beside=True,
                label=f"entries of {rate} tokens, {'with' if kind == _SPARSE else 'no'} index key",
            )
        )
    return layers


def _extra(config: Config) -> int:
    streams, d = config.count("hc_mult", 4), config.count("hidden_size")
    return streams * streams * d + streams + 1


FAMILIES = {
    "deepseek_v4": Family(
        layers=_layer,
        pattern=_pattern,
        extra=_extra,
        notes=(
            "tokens that wait for their compressed entry (fewer than one entry's worth a layer) "
            "are not counted",
        ),
    )
}
