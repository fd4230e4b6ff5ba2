"""Standard deviations for the attention's projections, and whether to use biases and QK-norm."""

from __future__ import annotations

import math

from configurator.core.case import Case
from configurator.core.kinds.mla import Latent
from configurator.core.report import Initialization

__all__ = ["initialization", "wants_qk_norm"]

_GPT2 = 0.02
_QK_NORM_FROM = 1_000_000_000
_SOURCES = (
    "residual scaling 0.02/sqrt(2*n_layers): karpathy/nanoGPT model.py, after GPT-2",
    "small init sqrt(2/(5*d_model)): EleutherAI/cookbook, after GPT-NeoX",
    "Xavier: Glorot and Bengio 2010; Kaiming: He et al. 2015 (arXiv 1502.01852)",
    "QK-norm: Wortsman et al. 2023 (arXiv 2309.14322), read in summary",
    "no biases: PaLM 2022 (arXiv 2204.02311)",
)


def wants_qk_norm(params: int, arch: str = "decoder") -> bool:
    """Whether norms on queries and keys are advised: for decoders from a billion parameters up.

    They cost ``2 * d_head`` weights a layer, are neutral for the loss, and keep attention logits
    bounded at the learning rates that larger models meet (Wortsman et al. 2023).
    """
    return arch == "decoder" and params >= _QK_NORM_FROM


def initialization(case: Case) -> Initialization:
    """Xavier, Kaiming and residual-scaled values for this shape, and the ones advised.

    ``xavier = sqrt(2 / (fan_in + fan_out))``, ``kaiming = sqrt(2 / fan_in)``, its linear form
    ``sqrt(1 / fan_in)``; residual-scaled is 0.02, with the output projection divided by
    ``sqrt(2 * n_layers)``. Each projection is taken as a matrix of its own: one fused QKV matrix
    would get a smaller Xavier value. ``k`` and ``v`` of MLA rise from the latent.
    """
    fans = _fans(case)
    layers = case.shape.n_layers
    small = min(_GPT2, math.sqrt(2.0 / (5.0 * case.shape.d_model)))
    scale = 1.0 / math.sqrt(2.0 * layers)
    latent = isinstance(case.attention, Latent)
    norm = bool(getattr(case.attention, "qk_norm", False))
    advice = (
        f"normal with standard deviation {small:.4g} for queries, keys and values, "
        f"{small * scale:.3g} for the output projection (divided by sqrt(2 x {layers})); no biases"
    )
    if norm:
        advice += "; QK-norm, which keeps attention logits bounded at high learning rates"
    elif latent:
        advice += "; norms on both latents instead of QK-norm, which absorption makes awkward"
    return Initialization(
        xavier={name: math.sqrt(2.0 / (i + o)) for name, (i, o) in fans.items()},
        kaiming={name: math.sqrt(2.0 / i) for name, (i, _) in fans.items()},
        kaiming_linear={name: math.sqrt(1.0 / i) for name, (i, _) in fans.items()},
        residual_scaled={name: _GPT2 * (scale if name == "o" else 1.0) for name in fans},
        recommended={name: small * (scale if name == "o" else 1.0) for name in fans},
        bias="none",
        qk_norm=norm,
        advice=advice,
        sources=_SOURCES,
    )


def _fans(case: Case) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of each projection."""
    a, d = case.attention, case.shape.d_model
    if isinstance(a, Latent):
        rank = a.kv_lora_rank
        return {
            "q": (a.q_lora_rank or d, a.n_heads * a.d_head),
            "k": (rank, a.n_heads * a.qk_nope_head_dim),
            "v": (rank, a.n_heads * a.v_head_dim),
            "o": (a.n_heads * a.v_head_dim, d),
            "kv_down": (d, a.latent_width),
        }
    width, v_width = a.d_head, a.v_width  # type: ignore[attr-defined]
    return {
        "q": (d, a.n_heads * width),
        "k": (d, a.kv_heads * width),
        "v": (d, a.kv_heads * v_width),
        "o": (a.n_heads * v_width, d),
    }
