"""The same questions to this project and to its peers: cache bytes, decode time, process time.

    python benchmarks/peers.py --install              each peer in an environment of its own
    python benchmarks/peers.py --output FILE          ask those that are installed
    python benchmarks/peers.py --search 600           and time a recommendation, at most so long

Peers are optional and live in ``build/peers`` (``--folder``), apart from this project's
environment. Each is asked through a small file in ``benchmarks/peers_ask``, which fills in what
the peer's own interface has room for: the fields of a model's config, a context, a batch, an H100,
and for decode the ranks. A peer that refuses is shown as refusing. Right means equal to the bytes
by the closed form below: the whole batch on one rank, where nothing is copied. Process time is
one question from start to exit, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from _report import ROOT, environment, keep, today

ASK = Path(__file__).parent / "peers_ask"

GIB = 2**30
LIMIT_S = 300
# adapter: what is installed (the versions that were tried)
PEERS = {
    "archc": "archc==0.0.1",
    "aiconfigurator": "aiconfigurator==0.12.0",
    "genz": "genz-llm==0.0.16",
    "llm_analysis": "llm-analysis==0.2.2",
    "kvfit": "kvfit==0.3.0",
    "hf_mem": "hf-mem==0.5.6",
}


def llama(width: int, layers: int, heads: int, d_ff: int) -> dict[str, Any]:
    """Llama 3 (the config.json files of Meta-Llama-3.1-8B and -70B)."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": d_ff,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    }


DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
}
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "vocab_size": 201088,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
# name: (config, the name under which aiconfigurator ships it, ranks of 80 GB)
MODELS = {
    "Llama-3 8B": (llama(4096, 32, 32, 14336), "meta-llama/Meta-Llama-3.1-8B", 1),
    "Llama-3 70B": (llama(8192, 80, 64, 28672), "meta-llama/Meta-Llama-3.1-70B", 8),
    "DeepSeek-V3": (DEEPSEEK, "deepseek-ai/DeepSeek-V3", 8),
    "gpt-oss-120b": (GPT_OSS, "openai/gpt-oss-120b", 1),
}
DECODED = ("Llama-3 8B", "Llama-3 70B")
# What does not fit the target is not asked: a time for it would mean nothing.
TOO_LARGE = {("Llama-3 8B", 131072, 16), ("Llama-3 70B", 131072, 16)}


def cache_bytes(config: dict[str, Any], context: int, batch: int) -> int:
    """Bytes of the whole bf16 cache by hand: 2 per value; latents once; windows full."""
    layers = config["num_hidden_layers"]
    if "kv_lora_rank" in config:
        return batch * layers * context * 2 * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    per_token = 2 * 2 * config["num_key_value_heads"] * config["head_dim"]
    local = config.get("layer_types", []).count("sliding_attention")
    tokens = (layers - local) * context + local * min(context, config.get("sliding_window", 0))
    return batch * tokens * per_token


def questions() -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "config": config,
            "hub_name": hub_name,
            "context": context,
            "batch": batch,
            "tensor_parallel": ranks,
            "decode": name in DECODED and (name, context, batch) not in TOO_LARGE,
        }
        for name, (config, hub_name, ranks) in MODELS.items()
        for context in (8192, 131072)
        for batch in (1, 16)
    ]


def python_of(folder: Path, peer: str) -> Path:
    if peer == "ours":
        return Path(sys.executable)
    return folder / peer / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(folder: Path) -> None:
    for peer, requirement in PEERS.items():
        place = folder / peer
        if not python_of(folder, peer).exists():
            venv.create(place, with_pip=True)
        command = [str(python_of(folder, peer)), "-m", "pip", "install", "-q", requirement]
        done = subprocess.run(command, capture_output=True, text=True)
        last = (done.stderr.strip().splitlines() or [""])[-1]
        print(f"{requirement}: {'installed' if done.returncode == 0 else last}", file=sys.stderr)


def ask(python: Path, peer: str, asked: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """Answers in the questions' order, and the seconds of the whole process."""
    env = os.environ | {"PYTHONPATH": str(ROOT) if peer == "ours" else "", "HF_HUB_OFFLINE": "1"}
    text = "".join(json.dumps(q) + "\n" for q in asked)
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [str(python), str(ASK / f"ask_{peer}.py")],
            input=text,
            capture_output=True,
            text=True,
            env=env,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return [{"error": f"no answer in {LIMIT_S} s"}] * len(asked), float(LIMIT_S)
    took = time.perf_counter() - began
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(found) != len(asked):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return [{"error": last[:160]}] * len(asked), took
    return found, took


def measure(folder: Path, repeats: int) -> dict[str, Any]:
    asked, found = questions(), {}
    for peer in ("ours", *PEERS):
        python = python_of(folder, peer)
        if not python.exists():
            print(f"{peer} is not installed; --install does it", file=sys.stderr)
            continue
        answers, _ = ask(python, peer, asked)
        seconds = [ask(python, peer, asked[:1])[1] for _ in range(repeats)]
        found[peer] = {"answers": answers, "seconds": seconds}
    return found


def searches(folder: Path, limit_s: float) -> dict[str, float | None]:
    """Seconds until a 7B design for 8 H100 at 8k and batch 32 is there; ``None``: not in time."""
    tool = python_of(folder, "archc").with_name("ac-compile")
    asked = {
        "ours": [sys.executable, "-m", "configurator", "recommend", "--params", "7B", "--context",
                 "8k", "--batch", "32", "--target", "8xh100-sxm"],
        "archc": [str(tool), "--hardware", "h100", "--params", "7", "--tokens", "2", "--context",
                  "8192", "--serving-tbt", "50", "--serving-batch", "32", "--tp", "8", "--pp", "1",
                  "--dp", "8"],
    }  # fmt: skip
    found: dict[str, float | None] = {}
    for peer, command in asked.items():
        if not Path(command[0]).exists():
            continue
        began = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory() as place:
                env = os.environ | {"PYTHONPATH": str(ROOT)}
                subprocess.run(command, cwd=place, env=env, capture_output=True, timeout=limit_s)
            found[peer] = time.perf_counter() - began
        except subprocess.TimeoutExpired:
            found[peer] = None
    return found


def cell(answer: dict[str, Any], truth: int) -> str:
    if "error" in answer or answer.get("cache_bytes") is None:
        return "refused"
    ratio = answer["cache_bytes"] / truth
    return "exact" if abs(ratio - 1) < 1e-9 else f"x {ratio:.4g}"  # some subtract floats


def markdown(report: dict[str, Any]) -> str:
    env, peers, asked = report["environment"], report["peers"], questions()
    names = {p: report["versions"].get(p, p) for p in peers}
    head = [
        "# Peers: the same questions, measured",
        "",
        f"{env['processor']}, {env['cores']} cores, Python {env['python']}, {report['date']}. Made "
        "by `python benchmarks/peers.py`, which says what is asked and how. kvfit and hf-mem are "
        "asked through their own functions with the config in hand; their commands need the "
        "network.",
        "",
        "## Whole bf16 cache",
        "",
        "Bytes by the closed form, then each answer: exact, or how many times too large.",
        "",
        "| model | context | batch | GiB | " + " | ".join(names.values()) + " |",
        "|---|---:|---:|---:|" + "---|" * len(peers),
    ]
    for i, q in enumerate(asked):
        truth = cache_bytes(q["config"], q["context"], q["batch"])
        cells = " | ".join(cell(p["answers"][i], truth) for p in peers.values())
        head.append(
            f"| {q['model']} | {q['context']:,} | {q['batch']} | {truth / GIB:.3f} | {cells} |"
        )
    timed = [p for p in peers if any("decode_s" in a for a in peers[p]["answers"])]
    head += [
        "",
        "## One decode step on H100 SXM, bf16, ms",
        "",
        "aiconfigurator interpolates kernels that were measured; the others, this project "
        "included, predict. This project's coefficients follow measured kernels, that database's "
        "among them, so for it this is no blind test. In brackets: over the measured kernels.",
        "",
        "| model | ranks | context | batch | " + " | ".join(names[p] for p in timed) + " |",
        "|---|---:|---:|---:|" + "---:|" * len(timed),
    ]
    for i, q in enumerate(asked):
        if not q["decode"]:
            continue
        known = peers.get("aiconfigurator", {"answers": [{}] * len(asked)})["answers"][i]
        base, cells = known.get("decode_s"), []
        for p in timed:
            seconds = peers[p]["answers"][i].get("decode_s")
            ratio = f" ({seconds / base:.2f})" if seconds and base else ""
            cells.append(f"{1e3 * seconds:.2f}{ratio}" if seconds else "refused")
        head.append(
            f"| {q['model']} | {q['tensor_parallel']} | {q['context']:,} | {q['batch']} | "
            + " | ".join(cells)
            + " |"
        )
    head += [
        "",
        "## Whole process, the first question",
        "",
        "| | median s | lowest | highest |",
        "|---|---:|---:|---:|",
    ]
    for p, found in peers.items():
        s = found["seconds"]
        head.append(f"| {names[p]} | {statistics.median(s):.2f} | {min(s):.2f} | {max(s):.2f} |")
    if report["searches"]:
        head += ["", "## A 7B design for 8 H100 at 8k and batch 32, whole process", ""]
        for p, took in report["searches"].items():
            limit = f"unfinished at {report['search_limit_s']:g} s"
            head.append(f"- {names.get(p, p)}: {limit if took is None else f'{took:.2f} s'}")
    refusals = {
        f"{names[p]}: {a['error']}"
        for p, found in peers.items()
        for a in found["answers"]
        if "error" in a
    }
    if refusals:
        head += ["", "Refusals, in the peers' words:", "", *(f"- {r}" for r in sorted(refusals))]
    return "\n".join(head) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--install", action="store_true", help="install the peers first")
    parser.add_argument("--search", type=float, default=0.0, help="seconds a search may take")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a folder, or a file's name")
    given = parser.parse_args()
    from configurator import __version__

    if given.install:
        install(given.folder)
    report = {
        "date": today(),
        "environment": environment(),
        "versions": {"ours": f"this project {__version__}"}
        | {p: r.replace("==", " ") for p, r in PEERS.items()},
        "peers": measure(given.folder, given.repeats),
        "search_limit_s": given.search,
        "searches": searches(given.folder, given.search) if given.search else {},
    }
    keep("peers", report, markdown(report), given.output)


if __name__ == "__main__":
    main()
