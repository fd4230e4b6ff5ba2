"""Helpers of the parity tests: build a class, run it, and lay its cache beside ours.

Run as a script, it writes ``outputs/parity.md``, the table of classes proven.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parity_models import MODELS, TOKENS, Model

from configurator.core.cost import params_total
from configurator.core.kinds.gqa import GroupedQuery
from configurator.core.kinds.mla import Latent
from configurator.core.kinds.shared_kv import SharedKeyValue
from configurator.interop.huggingface import Reading, read_shape
from configurator.interop.huggingface.family import Layer

__all__ = [
    "build",
    "cache_after_forward",
    "expected_layers",
    "observed_layers",
    "state_bytes",
    "static_bytes",
    "table",
]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = 23


def config_of(model: Model) -> Any:
    from transformers import AutoConfig

    keys = {k: v for k, v in model.config.items() if k != "architectures"}
    return AutoConfig.for_model(model.model_type, **keys, **model.only_class)


def build(model: Model, *, device: str = "cpu") -> Any:
    """An instance of the class, with random weights, or with none on the meta device."""
    import torch
    import transformers

    torch.manual_seed(0)
    with torch.device(device):
        return getattr(transformers, model.cls)(config_of(model)).eval()


def cache_after_forward(model: Model, dtype: str = "float32") -> Any:
    """The cache that a forward pass of 40 tokens leaves behind."""
    import torch

    net = build(model).to(getattr(torch, dtype))
    vocabulary = model.config.get("vocab_size", 500)
    tokens = torch.randint(3, vocabulary - 1, (1, TOKENS))
    with torch.no_grad():
        if model.model_type == "recurrent_gemma":  # its states live in the modules
            return _of_modules(net, tokens)
        if model.feed == "ids":
            out = net(input_ids=tokens, use_cache=True)
        elif model.feed == "source":
            source = torch.randint(3, vocabulary - 1, (1, SOURCE))
            out = net(input_ids=source, decoder_input_ids=tokens, use_cache=True)
        else:  # sound: two frames to a position
            frames = 2 * model.config["max_source_positions"]
            sound = torch.randn(1, model.config["num_mel_bins"], frames)
            out = net(input_features=sound, decoder_input_ids=tokens, use_cache=True)
    return out.cache


def _of_modules(net: Any, tokens: Any) -> Any:
    from types import SimpleNamespace

    from transformers import DynamicCache

    cache = DynamicCache(config=net.config)
    net(input_ids=tokens, cache=cache, use_cache=True)
    layers = list(cache.layers)
    for i, layer in enumerate(net.model.layers):
        block = layer.temporal_block
        if hasattr(block, "rg_lru"):
            layers[i] = SimpleNamespace(
                recurrent_states=block.rg_lru.recurrent_states, conv_states=block.conv1d_state
            )
    return SimpleNamespace(layers=layers)


def state_bytes(cache: Any) -> int:
    """Bytes of every recurrent and convolution state that a cache holds."""
    states = [
        t
        for layer in cache.layers
        for name in ("recurrent_states", "conv_states")
        for t in _tensors(getattr(layer, name, None))
    ]
    states += [t for t in getattr(cache, "linear_cache", ()) if len(t)]
    return sum(t.numel() * t.element_size() for t in states)


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape)[1:]


def _tensors(value: Any) -> list[Any]:
    """The tensors of a state that is one, a list or a dictionary of them."""
    if value is None:
        return []
    if isinstance(value, dict):
        value = [value[k] for k in sorted(value)]
    if not isinstance(value, list | tuple):
        value = [value]
    return [t for t in value if t is not None]


def _one(layer: Any) -> dict[str, tuple[int, ...]]:
    """What one layer's cache holds: (tokens, values a token) of each tensor, and its state."""
    found: dict[str, tuple[int, ...]] = {}
    for name, ours in (("keys", "k"), ("values", "v")):
        for tensor in _tensors(getattr(layer, name, None)):
            heads, tokens, width = _shape(tensor)
            found[ours] = (tokens, heads * width)
    if "v" in found and _same(layer.keys, layer.values):  # DeepSeek-V4: one vector is both
        del found["v"]
    if getattr(layer, "compressed_kv", None):
        entries = [_shape(t) for t in _tensors(layer.compressed_kv)]
        found["entries"] = (entries[0][0], sum(width for _, width in entries))
    for tensor in _tensors(getattr(layer, "indexer_keys", None)):
        found["index"] = _shape(tensor)
    for tensor in _tensors(getattr(layer, "recurrent_states", None)):
        found["state"] = (tensor.numel(),)
    for tensor in _tensors(getattr(layer, "conv_states", None)):
        found["convolution"] = _shape(tensor)
    return found


def _same(keys: Any, values: Any) -> bool:
    return keys.shape == values.shape and bool((keys == values).all())


def observed_layers(cache: Any) -> list[dict[str, tuple[int, ...]]]:
    """A cache of transformers, layer by layer; a decoder's own, then the source's."""
    if hasattr(cache, "self_attention_cache"):
        both = (cache.self_attention_cache, cache.cross_attention_cache)
        return [_one(layer) for part in both for layer in part.layers]
    found = [_one(layer) for layer in cache.layers]
    for i, state in enumerate(getattr(cache, "linear_cache", ())):  # MiniMax keeps them apart
        if len(state):
            found.extend({} for _ in range(i + 1 - len(found)))
            found[i]["state"] = (state.numel(),)
    return found


def expected_layers(
    reading: Reading, model: Model, tokens: int
) -> list[dict[str, tuple[int, ...]]]:
    """The same from our reading. A growing sliding layer keeps one token less between two steps."""
    own: list[dict[str, tuple[int, ...]]] = []
    crossed: list[dict[str, tuple[int, ...]]] = []
    for layer in reading.layers:
        if layer.label == "encoder":
            continue
        if layer.scope.kind == "cross":
            length = int(layer.scope.size) or SOURCE
            crossed.append(_kept(layer, length))
        elif layer.beside:
            own[-1] |= _kept(layer, tokens)
        else:
            own.append(_kept(layer, tokens))
    return own + crossed


def _kept(layer: Layer, tokens: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    if layer.state is not None:
        if layer.state.values:
            found["state"] = (layer.state.values,)
        if layer.state.channels:
            found["convolution"] = (layer.state.channels, layer.state.taps)
    a, scope = layer.attention, layer.scope
    if a is None or not scope.caches:
        return found
    held = tokens if scope.kind == "cross" else int(scope.tokens(tokens))
    if scope.kind in ("window", "chunk") and tokens >= scope.size:
        held -= 1
    if isinstance(a, Latent):
        found["k"], found["v"] = (held, a.kv_lora_rank), (held, a.qk_rope_head_dim)
        if a.index_head_dim:
            found["index"] = (held, a.index_head_dim)
    elif isinstance(a, SharedKeyValue):
        name = "entries" if scope.kind == "compressed" else "k"
        found[name] = (held, int(a.cache_elements()))
    elif isinstance(a, GroupedQuery):
        found["k"] = (held, a.n_kv_heads * a.d_head)
        found["v"] = (held, a.n_kv_heads * a.v_width)
    return found


def static_bytes(model: Model, context: int) -> int:
    """Bytes that a static cache of ``context`` tokens really holds after a pass that fills it."""
    import torch
    from transformers import StaticCache

    net = build(model)
    cache = StaticCache(config=net.config, max_cache_len=context)
    tokens = torch.randint(3, model.config.get("vocab_size", 500) - 1, (1, context))
    with torch.no_grad():
        net(input_ids=tokens, cache=cache, use_cache=True)
    return sum(
        t.numel() * t.element_size()
        for layer in cache.layers
        for name in ("keys", "values")
        for t in _tensors(getattr(layer, name, None))
    )


def table() -> str:
    """The classes proven, one row each, as Markdown."""
    lines = [
        "# Classes of transformers 5.24 that the counts are proven against",
        "",
        "Made by `python tests/parity_check.py`; `tests/test_parity.py` proves every row: the",
        "parameters of the class on the meta device equal ours to the last one, and after a",
        f"forward pass of {TOKENS} tokens each cache tensor has the heads, tokens and width that",
        "we say, and each recurrent layer the state.",
        "The configurations are small ones of our own (`tests/parity_models.py`); published sizes",
        "are in `tests/test_audit_published.py`. A growing cache of transformers holds one token",
        "less than the window between two steps, its static cache exactly the window.",
        "",
        "| Model type | Class | Parameters | Layers whose cache was compared | Values kept |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for model in sorted(MODELS, key=lambda m: (m.model_type, m.cls)):
        reading = read_shape({"model_type": model.model_type, **model.config})
        kept = expected_layers(reading, model, TOKENS) if model.feed else []
        values = sum(_count(part) for layer in kept for part in layer.values())
        compared = f"{len(kept)}" if model.feed else "-"
        lines.append(
            f"| {model.model_type} | {model.cls} | {params_total(reading.shape):,} | {compared} "
            f"| {f'{values:,}' if model.feed else '-'} |"
        )
    return "\n".join(lines) + "\n"


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


if __name__ == "__main__":
    target = ROOT / "outputs" / "parity.md"
    target.write_text(table(), encoding="utf-8")
    print(f"wrote {target}")
