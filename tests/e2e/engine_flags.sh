# One block of engine flags: simulate, capacity, tune, serve, play and validate know all
# of it, mean the same by it and refuse the same.
truth=$VT_ROOT/tests/cases/validate/truth
six=(simulate capacity tune serve play validate)

cat >few.yaml <<'Y'
requests: 20
arrival: {process: constant, rate: 20}
prompt: 600
output: 40
Y
steps=(--max-num-seqs 64 --max-num-batched-tokens 4096 --max-model-len 4096 --block-size 16
    --enable-prefix-caching --enable-chunked-prefill --long-prefill-token-threshold 512
    --scheduling-policy priority --no-async-scheduling --num-speculative-tokens 1
    --speculative-acceptance 0.5,0.2 --speculative-draft-us 100 --speculative-method ngram
    --watermark 0.01 --data-parallel-size 2)
layers=(--disable-hybrid-kv-cache-manager --prefix-cache-retention-interval 0
    --mamba-cache-mode align)
memory=(--gpu-memory-utilization 0.8 --kv-cache-dtype fp8 --tensor-parallel-size 2)
sizes=(--profile qwen3-8b-h200 --hf-config qwen3-8b --gpu H200)

for command in "${six[@]}"; do
    good "$command" --help
    for flag in "${steps[@]}" "${layers[@]}" "${memory[@]}" --num-gpu-blocks --num-gpu-blocks-override; do
        [ "${flag#--}" = "$flag" ] || grep -Eq -- "$flag([ ,]|\$)" out || fail "$command: no $flag"
    done
    bad "--block-size: '0' is not a whole number from 1 to" "$command" --block-size 0
    bad "--watermark: '2' is not a number from 0 to 1" "$command" --watermark 2
    bad "--scheduling-policy: 'x' is none of fcfs, priority" "$command" --scheduling-policy x
    bad "unknown flag '--watermarc'.*did you mean '--watermark'" "$command" --watermarc 1
    bad "--prefix-cache-retention-interval 'x': must be 0 to" "$command" \
        --prefix-cache-retention-interval x
    bad "--mamba-cache-mode: 'x' is none of none, align, all" "$command" --mamba-cache-mode x
done

# ---- simulate, capacity and tune run with all of it, and it changes what they say ----
load=(--workload few.yaml)
good simulate "${load[@]}" "${sizes[@]}" "${steps[@]}" "${memory[@]}" --json --quiet --out all
grep -q '"instances": \[' out || fail "no two engines: $(cat out)"
head -1 all/requests.jsonl | grep -q '"max_num_seqs":64,"max_num_batched_tokens":4096,"max_model_len":4096' ||
    fail "$(head -1 all/requests.jsonl)"
pool() { # FLAGS: KV blocks that a simulation has
    rm -rf pool
    good simulate "${load[@]}" "${sizes[@]}" "$@" --quiet --out pool
    head -1 pool/requests.jsonl | sed 's/.*"num_gpu_blocks":\([0-9]*\).*/\1/'
}
whole=$(pool --gpu-memory-utilization 0.9)
[ "$(pool --gpu-memory-utilization 0.5)" -lt "$whole" ] || fail "--gpu-memory-utilization"
[ "$(pool --kv-cache-dtype fp8)" -gt "$whole" ] || fail "--kv-cache-dtype"
[ "$(pool --tensor-parallel-size 2)" -gt "$whole" ] || fail "--tensor-parallel-size"
[ "$(pool --num-gpu-blocks-override 700)" = 700 ] || fail "--num-gpu-blocks-override"
bad 'give one of them' simulate --num-gpu-blocks 700 --gpu-memory-utilization 0.5
bad 'give one of them' simulate --autoscale 2:4 --data-parallel-size 2
bad "need a profile of kind 'step'" simulate --latency linear:base=1000 --hf-config qwen3-8b \
    --gpu H200 --tensor-parallel-size 2
bad 'needs --hf-config and --gpu' simulate --latency linear:base=1000 --gpu-memory-utilization 0.5

once=(--rates 4 --seeds 1 --once --jobs 1 --json --quiet)
good capacity "${load[@]}" "${sizes[@]}" "${once[@]}"
cp out plain
good capacity "${load[@]}" "${sizes[@]}" "${once[@]}" "${steps[@]}" "${memory[@]}"
! cmp -s out plain || fail "capacity: engine flags change nothing"
good capacity "${load[@]}" "${sizes[@]}" "${once[@]}" --gpu-memory-utilization 0.2
! cmp -s out plain || fail "capacity: --gpu-memory-utilization changes nothing"

tune=(tune "${load[@]}" "${sizes[@]}" --max-num-seqs 16 --max-num-batched-tokens 4096 "${once[@]}")
good "${tune[@]}"
cp out plain
for flags in "--no-async-scheduling" "--long-prefill-token-threshold 64" "--slo-e2e-p99 1" \
    "--kv-cache-dtype fp8" "--no-enable-prefix-caching" "--num-gpu-blocks-override 5000"; do
    # shellcheck disable=SC2086
    good "${tune[@]}" $flags
    ! cmp -s out plain || fail "tune: $flags changes nothing"
done
good tune "${load[@]}" "${sizes[@]}" "${once[@]}" "${steps[@]}" "${memory[@]}"

# ---- a model with windows: every command's pool is that of its groups ----
models=$VT_ROOT/tests/cases/models
gemma=(--hf-config "$models/gemma-3-12b.json" --gpu H200)
blocks_of() { # FLAGS: KV blocks that a simulation of gemma has
    rm -rf pool
    good simulate "${load[@]}" "${gemma[@]}" "$@" --quiet --out pool
    head -1 pool/requests.jsonl | sed 's/.*"num_gpu_blocks":\([0-9]*\).*/\1/'
}
# Six groups share a block that eight layers fill; without windows all 48 fill one.
[ $(($(blocks_of) / 6)) -eq "$(blocks_of --disable-hybrid-kv-cache-manager)" ] ||
    fail "--disable-hybrid-kv-cache-manager"
good simulate "${load[@]}" "${gemma[@]}" --json --quiet
cp out plain
good simulate "${load[@]}" "${gemma[@]}" --json --quiet --num-gpu-blocks 3000
! cmp -s out plain || fail "the pool's peak use is the same"
good capacity "${load[@]}" "${gemma[@]}" "${once[@]}"
good "${tune[@]}" "${gemma[@]}"
for command in simulate capacity; do
    bad 'must be a multiple of 16' $command "${load[@]}" "${gemma[@]}" \
        --prefix-cache-retention-interval 24
done
bad 'no layer of the model' simulate "${load[@]}" "${sizes[@]}" --vllm-version 0.32 \
    --prefix-cache-retention-interval 32
bad 'is not known; give --hf-config' simulate "${load[@]}" --latency linear:base=1000 \
    --prefix-cache-retention-interval 32
good simulate "${load[@]}" "${sizes[@]}" --vllm-version 0.32 --quiet \
    --prefix-cache-retention-interval 0
# Until 0.28 it is a variable, which later releases do not read.
export VLLM_PREFIX_CACHE_RETENTION_INTERVAL=24
bad 'must be a multiple of 16' simulate "${load[@]}" "${gemma[@]}" --vllm-version 0.26
good simulate "${load[@]}" "${gemma[@]}" --vllm-version 0.26 --quiet \
    --prefix-cache-retention-interval None
good simulate "${load[@]}" "${gemma[@]}" --vllm-version 0.29 --quiet
unset VLLM_PREFIX_CACHE_RETENTION_INTERVAL
echo '{"model_type":"llama","num_hidden_layers":4,"hidden_size":64,"num_attention_heads":4,
"intermediate_size":256,"vocab_size":1000,"layer_types":["a","a","a","a"]}' >odd.json
for command in simulate capacity tune serve play; do
    bad "layer_types: 'a' is not known" $command --hf-config odd.json --gpu H200
done

# ---- serve says what it has ----
cat >ask.py <<'PY'
import re, subprocess, sys, urllib.request
p = subprocess.Popen([*sys.argv[1:], "--port", "0"], stderr=subprocess.PIPE, text=True)
url = re.search(r"(http://\S+) answers", p.stderr.readline()).group(1)
text = urllib.request.urlopen(url + "/metrics").read().decode()
p.terminate()
print("\n".join(l for l in text.splitlines() if l.startswith("vllm:cache_config_info")))
sys.exit(p.wait())
PY
serve=("$VTWIN" serve "${sizes[@]}" "${steps[@]}")
python3 ask.py "${serve[@]}" "${memory[@]}" >small
python3 ask.py "${serve[@]}" --gpu-memory-utilization 0.9 >large
grep -q 'gpu_memory_utilization="0.8"' small || fail "$(cat small)"
blocks() { sed -n '1s/.*num_gpu_blocks="\([0-9]*\)".*/\1/p' "$1"; }
[ "$(blocks small)" -ne "$(blocks large)" ] || fail "serve: the same pool: $(cat small large)"
python3 ask.py "$VTWIN" serve "${gemma[@]}" --max-model-len 32768 --vllm-version 0.32 >windows
tokens=$(sed -n '1s/.*kv_cache_size_tokens="\([0-9]*\)".*/\1/p' windows)
[ "$tokens" -eq $(($(blocks windows) * 32768 / 7493)) ] || fail "serve: $(cat windows)"
bad "--data-parallel-size: '65' is not a whole number from 1 to 64" serve --data-parallel-size 65

# ---- play takes it all ----
timeout --preserve-status 2 "$VTWIN" play "${sizes[@]}" "${steps[@]}" "${memory[@]}" --quiet \
    --handshake-address ipc://nobody || fail "play: exit $?"
bad 'give one of them' play --engine-count 3 --data-parallel-size 2

# ---- validate: in place of what experiments state ----
judge=(validate --data-dir "$truth" --adapters vtwin-step --jobs 1 --quiet)
good "${judge[@]}" --output-dir as-measured
good "${judge[@]}" --output-dir other "${steps[@]}"
! cmp -s as-measured/error_records.csv other/error_records.csv || fail "validate: no change"
for flag in "--tensor-parallel-size 2" "--kv-cache-dtype fp8" "--gpu-memory-utilization 0.5" \
    --disable-hybrid-kv-cache-manager "--prefix-cache-retention-interval 0"; do
    # shellcheck disable=SC2086
    bad 'an experiment states' validate --data-dir "$truth" $flag
done
