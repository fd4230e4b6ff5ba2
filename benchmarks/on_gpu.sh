#!/usr/bin/env bash
# The micro-benchmark on a GPU, in under eight minutes: JSON, Markdown and SVG in a folder.
#
#   benchmarks/on_gpu.sh [FOLDER]        (default: outputs/measurements)
#
# Needs a torch with CUDA or ROCm. Every step is bounded, and one that fails does not stop the
# others; the script ends with the number of steps that failed.
set -uo pipefail
cd "$(dirname "$0")/.."

out="${1:-outputs/measurements}"
python="${PYTHON:-python3}"
mkdir -p "$out"
failed=0

name=$("$python" - <<'PY'
import re, sys
import torch
if not torch.cuda.is_available():
    sys.exit("torch sees no GPU here")
name = torch.cuda.get_device_name(0).lower()
print(re.sub(r"[^a-z0-9]+", "-", name.replace("nvidia", "")).strip("-"))
PY
) || { echo "on_gpu: no GPU that torch can use; nothing was measured" >&2; exit 3; }
stem="${name}_$(date -u +%Y-%m-%d)"

step() {  # step SECONDS COMMAND...: run it bounded, say how long it took
  local seconds="$1" start="$SECONDS"
  shift
  echo "== $* (at most ${seconds} s)" >&2
  if timeout --kill-after=5 "$seconds" "$@"; then
    echo "== done in $((SECONDS - start)) s" >&2
  else
    echo "== failed with $? after $((SECONDS - start)) s" >&2
    failed=$((failed + 1))
  fi
}

mha() { "$python" -m configurator "$@"; }
bench() {  # bench SECONDS NAME OPTIONS...: rows as JSON, then the same as Markdown with pictures
  local seconds="$1" kind="$2"
  shift 2
  step $((seconds + 20)) "$python" -m configurator bench --device cuda --budget "${seconds}s" \
    --output "$out/bench-${kind}_${stem}.json" "$@"
}

# 1. Correct first: reference modules and kernel paths (about 30 s).
step 60 "$python" -m pytest -q -p no:cacheprovider tests/test_attention.py tests/test_bench_paths.py
# 2. This card's rates; predictions for it come from them afterwards.
step 110 "$python" benchmarks/calibration.py --device cuda --budget 80 --output "$out"
step 110 "$python" -m configurator calibrate --device cuda --budget 60s \
  --output "$out/profile_${stem}.json" --format json
# 3. A 7B-like shape and its alternatives, then a latent cache, then a narrow cache.
bench 60 gqa8-bf16 --d-model 4096 --n-heads 32 --n-kv-heads 8 --d-head 128 --n-layers 32 \
  --context 32k --batch 8
bench 40 mla-bf16 --d-model 5120 --n-heads 128 --kv-lora-rank 512 --q-lora-rank 1536 \
  --qk-nope-head-dim 128 --qk-rope-head-dim 64 --v-head-dim 128 --n-layers 27 \
  --context 32k --batch 8 --only
bench 25 gqa8-fp8 --d-model 4096 --n-heads 32 --n-kv-heads 8 --d-head 128 --n-layers 32 \
  --context 32k --batch 8 --kv-dtype fp8 --only --phase decode
# 4. Pictures from the rows.
step 30 "$python" - "$out" "$stem" <<'PY'
import json, pathlib, sys
from configurator.render.plots import latency_vs_context, predicted_vs_measured
folder, stem = pathlib.Path(sys.argv[1]), sys.argv[2]
rows = [r for f in sorted(folder.glob(f"bench-*_{stem}.json")) for r in json.loads(f.read_text())["rows"]]
(folder / f"predicted_{stem}.svg").write_text(predicted_vs_measured(rows, stem))
(folder / f"latency_{stem}.svg").write_text(latency_vs_context(rows, stem))
print(f"{len(rows)} rows, {sum(r['status'] == 'ok' for r in rows)} ok")
PY
echo "== ${SECONDS} s in all, ${failed} steps failed; results in $out" >&2
exit "$failed"
