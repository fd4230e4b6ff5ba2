"""aiconfigurator: its measured kernel database, for the models whose configs it ships."""

from _serve import serve
from aiconfigurator.cli.api import cli_estimate
from aiconfigurator_core.sdk.config_builders import build_model_config
from aiconfigurator_core.sdk.models import get_model


def answer(question):
    ranks = question["tensor_parallel"]
    config = build_model_config(
        tp_size=1,
        pp_size=1,
        attention_dp_size=1,
        moe_tp_size=1,
        moe_ep_size=1,
        gemm_quant_mode="bfloat16",
        kvcache_quant_mode="bfloat16",
        fmha_quant_mode="bfloat16",
    )
    model = get_model(question["hub_name"], config, "vllm")
    each = model.get_kvcache_bytes_per_sequence(question["context"])
    found = {"cache_bytes": each * question["batch"]}
    if question["decode"]:
        estimate = cli_estimate(
            question["hub_name"],
            "h100_sxm",
            mode="static_gen",
            backend_name="vllm",
            isl=question["context"] - 1,
            osl=2,
            batch_size=question["batch"],
            tp_size=ranks,
            gemm_quant_mode="bfloat16",
            kvcache_quant_mode="bfloat16",
            fmha_quant_mode="bfloat16",
        )
        found["decode_s"] = estimate.tpot / 1e3
    return found


if __name__ == "__main__":
    serve(answer)
