# An engine described by its model and GPU: names, limits and KV pools as vLLM would have
# them, and what vLLM refuses.
cat >few.yaml <<'Y'
requests: 10
arrival: {process: constant, rate: 20}
prompt: 300
output: 20
Y
load=(--workload few.yaml --quiet)

meta() { # FLAGS: the settings of a simulation
    rm -rf made
    good simulate "$@" "${load[@]}" --out made
    head -1 made/requests.jsonl
}
setting() { # NAME FLAGS: one of them
    local name=$1
    shift
    meta "$@" | sed 's/.*"'"$name"'":\([0-9]*\).*/\1/'
}
is() { # WHAT GOT WANTED
    [ "$2" = "$3" ] || fail "$1: $2, not $3"
}

# ---- names: with or without organisation, any case, files, directories, other flags ----
cp -r "$VT_ROOT/tests/cases/models" configs
mkdir -p dir
cp configs/gemma-3-12b.json dir/config.json
blocks=$(setting num_gpu_blocks meta-llama/Llama-3.1-8B --gpu A100-80 --max-model-len 8192)
for flags in "llama-3.1-8b" "--hf-config LLAMA-3.1-8B" "--hf-config-path llama-3.1-8b"; do
    # shellcheck disable=SC2086
    is "$flags" "$(setting num_gpu_blocks $flags --gpu nvidia-a100-sxm4-80gb --max-model-len 8192)" "$blocks"
done
is "a directory" "$(setting num_gpu_blocks dir --gpu H200)" \
    "$(setting num_gpu_blocks --hf-config dir/config.json --gpu H200)"
for command in simulate capacity tune serve play; do
    bad "'llama-9b' is neither a known model nor a config.json; the nearest known are .*Llama" \
        $command llama-9b --gpu H200
done
bad "unknown GPU 'H999'" simulate qwen3-8b --gpu H999

good model known PHI-4-quant
is "those with a text" "$(wc -l <out)" 2
good model known --json
python3 -c 'import json; d = json.load(open("out")); assert len(d) >= 80 and d[0]["parameters"] > 1e8' ||
    fail "model known --json"

# --model is the model that is served, as everywhere; a latency model there, as it was, is
# taken with a note.
good simulate --model llama-3.1-8b --gpu A100-80 --max-model-len 8192 "${load[@]}" --out noted
grep -q "\"num_gpu_blocks\":$blocks," noted/requests.jsonl || fail "--model: another pool"
vtwin simulate --model linear:base=1000 --workload few.yaml
[ "$status" -eq 0 ] || fail "$(cat err)"
is "the note" "$(cat err)" \
    "vtwin: note: --model KIND:... is now --latency; --model names what is served"
bad "unknown model 'linaer' .did you mean 'linear'" simulate --latency linaer
bad "'qwen3-8' is neither a known model .* nearest known are .*8B" simulate --model qwen3-8
bad "no profile 'qwen3-8b-h20' .did you mean 'qwen3-8b-h200'" simulate --profile qwen3-8b-h20

# ---- limits are vLLM's on that GPU, and the model's ----
is "A100" "$(meta qwen3-8b --gpu A100-80 | grep -o '"max_num_seqs.*max_model_len":[0-9]*')" \
    '"max_num_seqs":256,"max_num_batched_tokens":2048,"max_model_len":40960'
is "H100" "$(meta qwen3-8b --gpu H100 | grep -o '"max_num_seqs.*max_model_len":[0-9]*')" \
    '"max_num_seqs":1024,"max_num_batched_tokens":8192,"max_model_len":40960'
is "B200" "$(setting max_num_batched_tokens qwen3-8b --gpu B200 --vllm-version 0.32)" 16384
is "B200, 0.27" "$(setting max_num_batched_tokens qwen3-8b --gpu B200 --vllm-version 0.27)" 8192
is "budget alone" "$(setting max_num_seqs qwen3-8b --gpu H100 --max-num-batched-tokens 512)" 512
for command in simulate capacity serve play; do
    bad 'max_num_batched_tokens .50. must be greater than or equal to max_num_seqs .100.' \
        $command --max-num-seqs 100 --max-num-batched-tokens 50
done
bad '2048 .*max-model-len|max-num-batched-tokens' simulate qwen3-8b --gpu A100-80 \
    --no-enable-chunked-prefill --max-num-batched-tokens 2048

bad 'max_model_len .50000. is greater than the derived max_model_len .40960 ' simulate qwen3-8b \
    --gpu H100 --max-model-len 50000

# ---- the pool follows model, GPU, parallelism, share and number formats ----
pool() { setting num_gpu_blocks "$@" --max-model-len 4096; }
more() { # WHAT MORE LESS
    [ "$2" -gt "$3" ] || fail "$1: $2 blocks, not more than $3"
}
one=$(pool qwen3-14b --gpu A100-80)
more "TP" "$(pool qwen3-14b --gpu A100-80 --tensor-parallel-size 2)" "$one"
more "PP" "$(pool qwen3-14b --gpu A100-80 --pipeline-parallel-size 2)" "$one"
more "FP8 weights" "$(pool qwen3-14b --gpu A100-80 --quantization fp8)" "$one"
more "FP8 KV" "$(pool qwen3-14b --gpu A100-80 --kv-cache-dtype fp8)" "$one"
more "share" "$(pool qwen3-14b --gpu A100-80 --gpu-memory-utilization 0.95)" "$one"
more "GPU" "$(pool qwen3-14b --gpu H200)" "$one"
more "model" "$(pool qwen3-8b --gpu A100-80)" "$one"
is "AWQ is its own" "$(pool qwen3-14b-awq --gpu A100-80 --quantization awq_marlin)" \
    "$(pool qwen3-14b-awq --gpu A100-80)"
bad "config.json says 'awq'" simulate qwen3-14b-awq --gpu H200 --quantization fp8
bad "'gptq' needs a model that was quantised so" simulate qwen3-14b --gpu H200 --quantization gptq
bad "dtype 'float32'" simulate qwen3-14b --gpu H200 --dtype float32
bad "40 attention heads can't be shared by 3 GPUs" simulate qwen3-14b --gpu H200 \
    --tensor-parallel-size 3
# An inline model that names model and GPU has their pool, no other's.
is "inline" "$(pool --latency roofline:hf_config=qwen3-14b,gpu=A100-80,tp=2 --max-num-seqs 256 \
    --max-num-batched-tokens 2048)" "$(pool qwen3-14b --gpu A100-80 --tensor-parallel-size 2)"

# ---- what does not fit is refused with the sizes and with what would fit ----
for command in simulate capacity serve play; do
    bad 'of 71.24 GiB on 1 x A100-80, weights take 131.* it would fit with --tensor-parallel-size 2' \
        $command llama-3.3-70b-instruct --gpu A100-80
done
bad 'less than max-model-len 131072; enough would be --tensor-parallel-size 2 or --kv-cache-dtype fp8' \
    simulate llama-3.1-8b --gpu RTX-4090 --max-model-len 131072 --quantization fp8 "${load[@]}"
# The model's own length is only a standard: vLLM would want another one given.
"$VTWIN" simulate llama-3.1-8b --gpu L4 "${load[@]}" >/dev/null 2>err || fail "an L4"
grep -Eq 'note: max-model-len is [0-9]+, which the KV cache holds, not the model.s 131072' err ||
    fail "$(cat err)"

# ---- where times come from, and how far they are to be trusted ----
basis() { # FLAGS: the basis of a simulation, by its JSON
    good simulate "${load[@]}" "$@" --json
    sed -n 's/.*"basis": "\([a-z]*\)".*/\1/p' out
}
is "the default" "$(basis)" measured
is "its model" "$(basis qwen3-8b)" measured
is "its model and GPU" "$(basis qwen3-8b --gpu H200)" measured
is "another length" "$(basis qwen3-8b-base --gpu H200)" measured
is "more GPUs" "$(basis qwen3-8b --tensor-parallel-size 2)" transferred
is "another KV format" "$(basis qwen3-8b --kv-cache-dtype fp8)" estimated
is "another KV format, by wish" "$(basis qwen3-8b --kv-cache-dtype fp8 --basis transferred)" transferred
is "another GPU" "$(basis qwen3-8b --gpu H100)" transferred
is "another model" "$(basis llama-3.1-8b)" estimated
is "other weights" "$(basis qwen3-8b --quantization fp8)" estimated
is "no graphs" "$(basis qwen3-8b --enforce-eager)" estimated
is "by wish" "$(basis qwen3-8b --basis estimated)" estimated
is "none" "$(basis --latency linear:base=1000)" ""
bad '--basis measured: llama-3.1-8b on 1 x H200: no profile was measured so' simulate llama-3.1-8b --basis measured
bad 'not with --profile' simulate --profile qwen3-8b-h200 --basis estimated
bad -- '--host-speed is of estimates' simulate qwen3-8b --host-speed 2

good simulate "${load[@]}" llama-3.1-8b --gpu A100-80 --json
python3 - out <<'PY' || fail "no trust in JSON: $(cat out)"
import json, sys
d = json.load(open(sys.argv[1]))
assert set(d["expected_error_pct"]) == {"e2e", "ttft", "ttft_p99", "itl", "itl_p99", "throughput"}
assert min(d["expected_error_pct"].values()) > 0
assert any(n.startswith("A100-80: ") for n in d["outside"]["notes"])
PY
good simulate "${load[@]}" llama-3.1-8b --gpu A100-80
grep -q '^basis        estimated; within E2E [0-9]* %, TTFT ' out || fail "$(cat out)"
once=(--num-prompts 10 --rates 2 --seeds 1 --once --jobs 1 --quiet)
good capacity llama-3.1-8b --gpu A100-80 --workload few.yaml "${once[@]}" --json
grep -q '"basis": "estimated"' out || fail "capacity: $(cat out)"
good tune llama-3.1-8b --gpu A100-80 --workload few.yaml "${once[@]}" --max-num-seqs 64 \
    --max-num-batched-tokens 2048 --tensor-parallel-size 1,2 --json
grep -q '"basis": "estimated"' out || fail "tune: $(cat out)"

# A profile is carried over everywhere alike, and named.
good tune qwen3-8b --gpu H100 --workload few.yaml "${once[@]}" --max-num-seqs 64 \
    --max-num-batched-tokens 2048 --json
grep -q '"basis": "transferred"' out || fail "tune: $(cat out)"
grep -q '"basis_from": "qwen3-8b-h200"' out || fail "tune: $(cat out)"
good simulate "${load[@]}" --profile qwen3-8b-h200 --gpu A100-80
grep -q '^basis        transferred from qwen3-8b-h200; within ' out || fail "$(cat out)"
# One's own profiles count before ours.
mkdir own
sed 's/"gpu": "H200"/"gpu": "L40S"/' "$VT_ROOT/profiles/qwen3-8b-h200.json" >own/slow.json
is "one's own" "$(basis qwen3-8b --gpu L40S --profiles own)" measured
is "by the environment" "$(VTWIN_PROFILES=own basis qwen3-8b --gpu L40S)" measured
is "not without it" "$(basis qwen3-8b --gpu L40S)" transferred
bad 'none: No such file' simulate qwen3-8b --profiles none
echo '{' >own/broken.json
bad 'own/broken.json' simulate qwen3-8b --profiles own
rm -r own

# How fast a host is shows in captures of any model, and holds for others.
for speed in 0.5 1.0; do
    good simulate "${load[@]}" llama-3.2-1b --basis estimated --host-speed $speed --out made
    sed -i '1s/{"meta":{/&"model":"llama-3.2-1b","gpu":"H200","tp":1,/' made/requests.jsonl
    vtwin simulate "${load[@]}" llama-3.2-3b --host-from made --json
    [ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
    cp out by_captures
    found=$(sed -n 's/.*--host-from: .*--host-speed //p' err)
    awk "BEGIN { exit !($found / $speed > 0.95 && $found / $speed < 1.05) }" || fail "$speed: $found"
    rm -r made
done
good simulate "${load[@]}" llama-3.2-3b --host-speed "$found" --json
python3 -c '
import json
a, b = (json.load(open(f))["itl_ms"]["mean"] for f in ("out", "by_captures"))
assert abs(a / b - 1) < 0.002, (a, b)'
bad 'host-from: .*nowhere' simulate llama-3.2-3b --host-from nowhere
bad 'host-from' simulate llama-3.2-3b --host-from nowhere --host-speed 2
bad 'is of estimates' simulate qwen3-8b --host-from "$VT_ROOT/tests/sim/data"

# CUDA graphs by either of vLLM's flags; a profile is carried over to others.
itl() { # FLAGS
    good simulate "${load[@]}" "$@" --json
    python3 -c 'import json; print(json.load(open("out"))["itl_ms"]["mean"])'
}
few=$(itl qwen3-8b --max-cudagraph-capture-size 64)
[ "$few" != "$(itl qwen3-8b)" ] || fail "graphs of 64 change nothing"
all=(1 2 4 {8..64..8})
is "all sizes" "$(itl qwen3-8b --cudagraph-capture-sizes "${all[@]}")" "$few"
two=$(itl qwen3-8b --cudagraph-capture-sizes 64 1)
awk "BEGIN { exit !($two > 1.02 * $few) }" || fail "two sizes: $two, all: $few"
is "the config" "$(itl qwen3-8b --compilation-config '{"cudagraph_capture_sizes": [1, 64, 1]}')" "$two"
is "as a list" "$(itl qwen3-8b --max-cudagraph-capture-size 64 --cudagraph-capture-sizes 1,64)" "$two"
good profile make qwen3-8b --cudagraph-capture-sizes 1 64 -o sizes.json
grep -q '"graph_sizes": \[1, 64\],' sizes.json || fail "$(cat sizes.json)"
bad 'should be consistent with the max value' simulate qwen3-8b \
    --max-cudagraph-capture-size 32 --cudagraph-capture-sizes 1 64
bad 'mutually exclusive' simulate qwen3-8b --cudagraph-capture-sizes 1 64 \
    --compilation-config '{"cudagraph_capture_sizes": [1]}'
bad "cudagraph-capture-sizes: 'x' is no" simulate qwen3-8b --cudagraph-capture-sizes x
bad 'must be 1 to' simulate qwen3-8b --cudagraph-capture-sizes 0
bad '--compilation-config: .*must be a list' simulate \
    --compilation-config '{"cudagraph_capture_sizes": 4}'
# A mixture sets memory for its graphs aside.
blocks() {
    good profile kv-capacity qwen3-30b-a3b --gpu H200 --json "$@"
    python3 -c 'import json; print(json.load(open("out"))["num_gpu_blocks"])'
}
[ "$(blocks --enforce-eager)" -gt "$(blocks --cudagraph-capture-sizes 1 2 4)" ] || fail "no graphs take room"
[ "$(blocks --cudagraph-capture-sizes 1 2 4)" -gt "$(blocks)" ] || fail "three graphs take as much as all"
is "no graphs" "$(itl qwen3-8b --compilation-config '{"cudagraph_mode": "NONE"}')" \
    "$(itl qwen3-8b --enforce-eager)"
is "a profile's" "$(basis --profile qwen3-8b-h200 --max-cudagraph-capture-size 64)" transferred
bad '--compilation-config: ' simulate --compilation-config 3
bad '--compilation-config: ' simulate --compilation-config '{'

# More of everything is no slower.
p50() { # FLAGS: time for each token
    good simulate "${load[@]}" "$@" --max-model-len 4096
    sed -n 's/^TPOT *[0-9.]* *\([0-9]*\)\..*/\1/p' out
}
slow=$(p50 qwen3-32b --gpu A100-80)
for flags in "--tensor-parallel-size 2" "--gpu H200" "--quantization fp8"; do
    # shellcheck disable=SC2086
    [ "$(p50 qwen3-32b --gpu A100-80 $flags)" -lt "$slow" ] || fail "$flags: not below $slow ms"
done

# ---- profile make writes what would be used ----
good profile make llama-3.1-8b --gpu A100-80 -o made.json
good profile show made.json
grep -q 'basis: estimated' out || fail "$(cat out)"
good simulate "${load[@]}" --profile made.json --json
is "a made profile's basis" "$(sed -n 's/.*"basis": "\([a-z]*\)".*/\1/p' out)" estimated
cp out by-profile
good simulate "${load[@]}" llama-3.1-8b --gpu A100-80 --json
python3 - out by-profile <<'PY' || fail "another engine: $(cat out by-profile)"
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert abs(a["e2e_ms"]["mean"] / b["e2e_ms"]["mean"] - 1) < 0.01
assert a["expected_error_pct"] == b["expected_error_pct"]
assert a["outside"] == b["outside"]
PY
bad 'make needs a MODEL' profile make --gpu H100

# ---- serve goes by the same names ----
serving llama-3.1-8b --gpu A100-80 --max-model-len 8192
ask() { # PATH: an answer, whole before it is looked through
    curl -s "$url$1" >answer
}
ask /server_info
grep -q '"vtwin":{.*"basis":"estimated","expected_error_pct":{"e2e":' answer || fail "$(cat answer)"
ask /v1/models
grep -q '"id":"llama-3.1-8b"' answer || fail "$(cat answer)"
ask /metrics
grep -q "num_gpu_blocks=\"$blocks\"" answer || fail "serve: $(grep cache_config answer)"

# ---- a directory is a model, too: its pool and times are its own, not the default's ----
pool() { # of the server
    ask /metrics
    sed -n 's/.*num_gpu_blocks="\([0-9]*\)".*/\1/p' answer
}
serving "$VT_ROOT/tests/cases/tiny-qwen3" --max-model-len 2048
ask /server_info
grep -q '"vtwin":{.*"basis":"estimated"' answer || fail "$(cat answer)"
own=$(pool)
serving --max-model-len 2048
[ "$(pool)" != "$own" ] || fail "the directory has the default profile's pool: $own"
# A profile that is asked for times it with its own pool, as before.
default=$(pool)
serving "$VT_ROOT/tests/cases/tiny-qwen3" --max-model-len 2048 --profile qwen3-8b-h200
is "the profile's pool" "$(pool)" "$default"
