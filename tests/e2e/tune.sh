#!/bin/bash
# vtwin tune: its answer does not depend on --jobs, smart finds what the grid finds, its
# files are there, and bad flags are told.
set -euo pipefail

space=(--num-prompts 60 --max-num-seqs 4,16,64 --max-num-batched-tokens 512,2048
    --gpu-memory-utilization 0.3,0.9 --max-model-len 8192 --max-latency-allowed-ms 4000)

for jobs in 1 2 4; do
    "$VTWIN" tune "${space[@]}" --jobs $jobs --json --out "out$jobs" >"$jobs.json"
    cmp 1.json "$jobs.json"
    cmp out1/trials.csv "out$jobs/trials.csv"
done
"$VTWIN" tune "${space[@]}" --search smart --json >smart.json
python3 - <<'P'
import json
grid, smart = json.load(open("1.json")), json.load(open("smart.json"))
assert grid["trials"] == 12 and smart["trials"] < 12
assert grid["best"] == smart["best"]
assert grid["best"]["e2e_p99_ms"] <= 4000
P

# As auto_tune writes it.
head -1 out1/result.txt | grep -q '^hash:'
[ "$(grep -c '^max_num_seqs: ' out1/result.txt)" = 12 ]
tail -1 out1/result.txt | grep -Eq \
    '^best_max_num_seqs: [0-9]+, best_num_batched_tokens: [0-9]+, best_throughput: [0-9.]+, profile saved in: '
[ "$(wc -l <out1/trials.csv)" = 13 ]
if command -v gnuplot >/dev/null; then
    [ "$(head -c 4 out1/pareto.png | tail -c 3)" = PNG ]
fi
# The model that was asked about, how it was quantised, and a pool that fits its card.
"$VTWIN" tune --profile llama-70b-fp8-h200 --gpu-memory-utilization 0.85,0.95 --num-prompts 20 \
    --max-num-seqs 64 --max-num-batched-tokens 8192 >llama
grep -q '^  vllm serve meta-llama/Llama-3.1-70B --quantization fp8 --max-num-seqs 64 .* --tensor-parallel-size 1 --enable-prefix-caching' llama
"$VTWIN" tune meta-llama/Llama-3.1-8B-Instruct --gpu A100-80 --num-prompts 20 --max-num-seqs 64 \
    --max-num-batched-tokens 2048 --kv-cache-dtype fp8 --json --out a100 >a100.json 2>err
python3 -c '
import json
a = json.load(open("a100.json"))
assert 40 < a["best"]["kv_cache_gib"] < 72, a["best"]["kv_cache_gib"]
assert a["basis"] == "estimated" and a["expected_error_pct"]'
# What goes beyond what was measured does not win silently.
"$VTWIN" profile show qwen3-8b-h200 --json | sed 's/"seen_running": *[0-9]*/"seen_running": 2/' >narrow.json
"$VTWIN" tune --profile narrow.json --num-prompts 20 --max-num-seqs 1,16 --max-num-batched-tokens 2048 >table 2>err
grep -Eq '^ +16 .* \*$' table
! grep -Eq '^ +1 .* \*$' table
grep -q '^outside      running requests reached 16, fitted up to 2$' table
# A limit that nothing keeps: exit 1, and by how much.
status=0
"$VTWIN" tune --num-prompts 20 --max-num-seqs 16,64 --max-num-batched-tokens 8192 \
    --max-latency-allowed-ms 400 >table 2>err || status=$?
[ $status = 1 ]
[ "$(grep -c 'E2E p99 is [0-9.]* ms at 0.007812 req/s, [0-9.]* times its limit' table)" = 2 ]
grep -q 'no configuration keeps the limits; of the one that comes nearest E2E p99 is' err
# Where one request a second is too much a slower one is found.
"$VTWIN" tune --latency linear:base=150000 --num-prompts 20 --max-num-seqs 1 --max-num-batched-tokens 8192 \
    --workload default-workload --max-latency-allowed-ms 120000 --json >slow.json
python3 -c '
import json
best = json.load(open("slow.json"))["best"]
assert 0 < best["request_rate"] < 1, best'
"$VTWIN" tune "${space[@]}" | grep -q '^  vllm serve Qwen/Qwen3-8B --max-num-seqs '

# Capacity, rates of one's own, two engines, drafts.
"$VTWIN" tune --objective capacity --rates 4,8,16 --num-prompts 60 --max-num-seqs 8,64 \
    --max-num-batched-tokens 2048 --num-speculative-tokens 0,2 --data-parallel-size 1,2 \
    --routing 'round-robin;queue-depth:1,kv-utilization:1' --json >cap.json
python3 -c 'import json; assert json.load(open("cap.json"))["trials"] == 16'

# As auto_tune.sh is told and as it leaves its files; the environment counts more than the
# file, the command line most.
cat >vars.sh <<'V'
MODEL="Qwen/Qwen3-8B" # which
export INPUT_LEN=600
OUTPUT_LEN=${OUTPUT_LEN:-40}
MAX_MODEL_LEN=2048
MIN_CACHE_HIT_PCT=50
MAX_LATENCY_ALLOWED_MS=900
num_seqs_list="8 32"
NUM_BATCHED_TOKENS_LIST="1024"
V
BASE=$PWD/base INPUT_LEN=400 "$VTWIN" tune --auto-tune vars.sh --gpu H200 --num-prompts 100 >auto.txt
grep -q 'vllm serve Qwen/Qwen3-8B .*--gpu-memory-utilization 0.98 --max-model-len 2048' auto.txt
cd base/auto-benchmark/*/
[ "$(grep -c '^max_num_seqs: ' result.txt)" = 2 ]
ls vllm_log_8_1024.txt vllm_log_32_1024.txt bm_log_8_1024_requestrate_inf.txt >/dev/null
grep -q '^P99 E2EL (ms): [0-9.]*$' bm_log_32_1024_requestrate_inf.txt
cd - >/dev/null
! INPUT_LEN=4000 "$VTWIN" tune --auto-tune vars.sh 2>err
grep -q 'INPUT_LEN 4000 and OUTPUT_LEN 40 are more than MAX_MODEL_LEN 2048' err

# The plan.
for jobs in 1 4; do
    "$VTWIN" tune --plan tuning-plan.yaml --num-prompts 30 --rates 1,20 --seeds 1 \
        --jobs $jobs --out "plan$jobs" >"plan$jobs.txt"
done
cmp plan1.txt plan4.txt
cmp plan1/plan.csv plan4/plan.csv
grep -q 'phase 0 baseline' plan1.txt
# Names and limits with commas are one field each.
python3 -c '
import csv
rows = list(csv.reader(open("plan1/plan.csv")))
assert {len(r) for r in rows} == {16}, {len(r) for r in rows}
assert any("," in r[1] for r in rows)'
grep -q ',"TTFT p99",' plan1/plan.csv # there may be several, with commas between

fails() { # MESSAGE FLAGS...
    local want=$1
    shift
    if "$VTWIN" tune "$@" >/dev/null 2>err; then
        echo "tune $*: no failure"
        exit 1
    fi
    grep -qF -- "$want" err || {
        cat err
        exit 1
    }
}
fails "--max-num-seqs: 'x' is not a number" --max-num-seqs 8,x
fails "is not a whole number" --max-num-seqs 8.5
fails "--routing" --routing by-luck
fails "--prefix-caching" --prefix-caching maybe
fails "--rates must ascend" --rates 2,1
fails "no-such-plan.yaml" --plan no-such-plan.yaml
fails "no-such-workload" --workload no-such-workload

# Formats of the KV cache are searched over, and the JSON says how it was made.
"$VTWIN" tune meta-llama/Llama-3.1-8B --gpu A100-80 --workload sharegpt --num-prompts 30 \
    --max-num-seqs 64 --max-num-batched-tokens 2048 --kv-cache-dtype auto,fp8 --json >kv.json
python3 - <<'P'
import json
d = json.load(open("kv.json"))
auto, fp8 = d["tried"]
assert (auto["kv_cache_dtype"], fp8["kv_cache_dtype"]) == ("auto", "fp8")
assert fp8["num_gpu_blocks"] == 2 * auto["num_gpu_blocks"]
s = d["settings"]
assert s["kv_cache_dtype"] == d["best"]["kv_cache_dtype"] and s["workload"] == "sharegpt", s
assert s["max_num_seqs"] == 64 and s["gpu"] == "A100-80" and s["gpu_memory_utilization"] == 0.9
P
"$VTWIN" tune --kv-cache-dtype auto,int3 2>err && exit 1
grep -q "'int3' is none of auto, fp8" err
