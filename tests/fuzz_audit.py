"""Hostile configurations: real ones with keys taken out, put in, and given values of any kind.

``configurations`` draws a configuration, ``questions`` what is asked of it, and ``survives`` holds
for all of them: an exact answer, or one line that says what is wrong.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from parity_models import MODELS
from published_configs import PUBLISHED

from configurator.catalog.targets import device
from configurator.core.errors import UsageError
from configurator.interop.audit import audit
from configurator.interop.config_file import parse_config
from configurator.interop.export import export, formats, subject_from
from configurator.interop.huggingface.family import families
from configurator.interop.huggingface.spellings import SPELLINGS
from configurator.render.audit import audit_document
from configurator.render.markdown import to_markdown

__all__ = ["configurations", "parses", "questions", "shows", "survives", "texts"]

_CASES = Path(__file__).parent / "cases"
_LONGEST = 700  # characters of a message: it names what was given, cut short


def _bases() -> list[dict[str, Any]]:
    found = [{"model_type": m.model_type, **m.config} for m in MODELS]
    found += [config for config, *_ in PUBLISHED.values()]
    for path in sorted(_CASES.glob("*.json")):
        case = json.loads(path.read_text())
        found += [case[name] for name in ("config", "base") if name in case]
    return found


BASES = _bases()
_KEYS = sorted(
    {key for base in BASES for key in base}
    | {name for names in SPELLINGS.values() for name in names}
    | {"text_config", "vision_config", "audio_config", "architectures", "layer_types",
       "quantization_config", "rope_scaling", "attn_config", "ffn_config", "block_configs",
       "hybrid_override_pattern", "is_encoder_decoder", "dtype", "num_nextn_predict_layers"}
)  # fmt: skip

_whole = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([16, 24, 48, 64, 96, 128, 1000, 4096, 2**20]),
    st.sampled_from([10**6, 2**31, 2**63, 10**18, 10**30, -(10**30)]),
)
_words = st.one_of(
    st.sampled_from(["", "7", "full_attention", "sliding_attention", "mamba", "M*-", "true", "none",
                     "gelu", "bfloat16", "nan", "64", "linear_attention", "moe", "dense"]),
    st.text(max_size=8),
)  # fmt: skip
_scalars = st.one_of(
    _whole, _words, st.none(), st.booleans(),
    st.floats(), st.sampled_from([0.5, 1.0, 128.0, -0.0]),
)  # fmt: skip
_values = st.one_of(
    _scalars,
    st.lists(_whole, max_size=8),
    st.lists(_words, max_size=8),
    st.lists(_scalars, max_size=4),
    st.lists(st.lists(_whole, max_size=3), max_size=3),
    st.dictionaries(st.sampled_from(_KEYS) | _words, _scalars, max_size=5),
    st.lists(st.dictionaries(st.sampled_from(_KEYS), _scalars, max_size=3), max_size=3),
)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A real configuration after a few changes, sometimes nested or of another type."""
    config: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(0, 5))):
        _change(draw, config)
    if draw(st.integers(0, 9)) == 0:
        types = st.one_of(st.sampled_from(sorted(families())), _values)
        config["model_type"] = draw(types)
    if draw(st.integers(0, 9)) == 0:
        outer = draw(st.sampled_from(["text_config", "llm_config", "language_config",
                                      "thinker_config", "decoder", "text_model"]))  # fmt: skip
        config = {"model_type": draw(st.sampled_from(["llava", "qwen2_5_vl", "x"])), outer: config}
    return config


def _change(draw: st.DrawFn, config: dict[str, Any]) -> None:
    levels = [config, *(v for v in config.values() if isinstance(v, dict))]
    level = levels[draw(st.integers(0, len(levels) - 1))]
    own = sorted(level)
    what = draw(st.integers(0, 4))
    if what == 0 and own:
        del level[draw(st.sampled_from(own))]
    elif what == 1:
        level[draw(st.sampled_from(_KEYS))] = draw(_values)
    elif what == 2 and own:
        key = draw(st.sampled_from(own))
        level[key] = [level[key]] * draw(st.integers(0, 8))
    elif what == 3 and own:
        key = draw(st.sampled_from(own))
        if isinstance(level[key], int):
            level[key] = level[key] * draw(st.sampled_from([-1, 0, 2, 3, 1000, 10**9]))
    elif own:
        level[draw(st.sampled_from(own))] = draw(_values)


_H100 = device("8xh100-sxm")


def questions() -> st.SearchStrategy[dict[str, Any]]:
    """What is asked, within what the command line lets through."""
    return st.fixed_dictionaries(
        {},
        optional={
            "kv_dtype": st.sampled_from(
                ["bf16", "fp32", "q8_0", "nvfp4", "k=q8_0,v=q4_0", "fp8_ds_mla"]
            ),
            "context": st.integers(1, 2**31) | st.sampled_from(["32k", "1M", 1]),
            "batch": st.integers(1, 10**6),
            "tensor_parallel": st.integers(1, 64),
            "device": st.just(_H100),
            "page_size": st.integers(1, 256),
            "source_len": st.integers(1, 10**6),
            "kv_budget": st.integers(1, 10**15),
            "cache_mode": st.sampled_from(["latent", "rebuilt"]),
        },
    )


texts = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.builds(
        lambda base, start, cut, noise: (
            json.dumps(base).encode()[:start] + noise + json.dumps(base).encode()[start + cut :]
        ),
        st.sampled_from(BASES),
        st.integers(0, 400),
        st.integers(0, 60),
        st.binary(max_size=4),
    ),
)
"""Files: noise, text, and real files with a piece cut out or noise put in."""


def survives(config: object, question: dict[str, Any]) -> bool:
    """Audit; raises ``AssertionError`` for an answer that cannot be, and whatever went wrong.

    True for an answer, false for a refusal.
    """
    try:
        answer = audit(config, **question)  # type: ignore[arg-type]
    except UsageError as error:
        _one_line(str(error))
        return False
    found = answer.to_dict()
    text = json.dumps(found, allow_nan=False)
    for name in ("kv_bytes_per_token", "kv_bytes_at_context", "kv_layers", "params_total"):
        value = found.get(name)
        if value is not None and (not isinstance(value, int) or value < 0):
            raise AssertionError(f"{name} is {value!r}")
    for warning in answer.warnings:
        _one_line(warning)
    if len(text) > 5_000_000:
        raise AssertionError(f"an answer of {len(text):,} characters")
    return True


def shows(config: object, question: dict[str, Any]) -> None:
    """Print the answer and write it in every format, or be told in one line why not."""
    try:
        to_markdown(audit_document(audit(config, **question), "m"))  # type: ignore[arg-type]
        subject = subject_from(config, **question)  # type: ignore[arg-type]
    except UsageError as error:
        _one_line(str(error))
        return
    for name in formats():
        try:
            found = export(subject, name)
        except UsageError as error:
            _one_line(str(error))
        else:
            json.dumps(found.values, allow_nan=False)


def parses(data: bytes) -> dict[str, Any] | None:
    """The configuration in ``data``, or nothing where one line refuses it."""
    try:
        return parse_config(data)
    except UsageError as error:
        _one_line(str(error))
        return None


def _one_line(text: str) -> None:
    text.encode("ascii" if text.isascii() else "utf-8")
    if not text.strip() or len(text.splitlines()) != 1 or len(text) > _LONGEST:
        raise AssertionError(f"not one clear line: {text[:900]!r}")
