#!/bin/bash
# A command line of `vllm serve` is taken as it is: what is modelled acts, what is not and
# would be missed is warned of, and what means nothing to a twin is listed with -v.
set -euo pipefail

# up ARGS...: the server comes up; what it says is in `said`.
up() {
    : >said # the last server has said the same
    "$VTWIN" serve "$@" --port 0 >/dev/null 2>said &
    local server=$!
    for _ in $(seq 300); do
        if grep -q 'answers for' said; then break; fi
        if ! kill -0 $server 2>/dev/null; then break; fi
        sleep 0.1
    done
    url=$(grep -o 'http://[0-9.:]*' said || true)
    [ -n "$url" ] && curl -fsS "$url/server_info" >info && curl -fsS "$url/v1/models" >models
    local found=$?
    kill $server && wait $server
    [ $found = 0 ] || { cat said && false; }
}
says() { grep -Fq -- "$1" said || { echo "not said: $1" && cat said && false; }; }

up Qwen/Qwen3-8B --gpu H200 -tp 1 --gpu-memory-utilization 0.9 --dtype auto \
    --enable-auto-tool-choice --tool-call-parser hermes --trust-remote-code --enable-lora \
    --max_model_len 16k --max-num-seqs 32 --max-log-len -1 --no-enable-log-requests \
    --kv-transfer-config '{"kv_connector": "LMCacheConnectorV1"}' -O3 --compilation-config.cudagraph_capture_sizes '[1, 2, 4]' \
    --served-model-name one two
says 'warning: --optimization-level: not modelled'
says 'warning: --kv-transfer-config: only the OffloadingConnector and the NixlConnector are modelled'
! grep -q -e '--trust-remote-code' said
grep -q '"id":"one"' models && grep -q '"id":"two"' models
grep -q '"max_model_len":16000' models

# The same from a file; the command line comes after it. Drafts are what the JSON says.
cat >flags.yaml <<'Y'
model: Qwen/Qwen3-8B
gpu: H200
max_num_seqs: 32
served-model-name: [a, b]
trust-remote-code: true
enable_lora: false
allowed-origins: ["*"]
speculative_config: {method: eagle3, num_speculative_tokens: 3}
Y
up --config flags.yaml --max-num-seqs 7 -v
says 'note: --trust-remote-code, --allowed-origins: without a meaning for a twin'
! grep -q 'enable-lora' said
grep -q '"id":"b"' models
grep -q 'max_num_seqs=7,' info
grep -q "speculative_method='eagle', num_speculative_tokens=3" info
says 'note: no draft is accepted'

# What neither knows is refused, with what is meant.
refused() {
    local want=$1 rc=0
    shift
    "$VTWIN" serve --port 0 "$@" >/dev/null 2>said || rc=$?
    [ $rc = 2 ]
    says "$want"
}
refused "unknown flag '--nonsense'" --nonsense
refused "did you mean '--max-num-seqs'" --max-num-seq 3
refused '--speculative-config: line 1' --speculative-config '{"x"'
refused 'missing.yaml' --config missing.yaml
refused '--config needs a value' --config

# llm-d-inference-sim's: times become knobs, the model any name, what it has no flags for here
# is told.
up --compat llm-d --model my/model --time-to-first-token 200ms --inter-token-latency 20 \
    --kv-cache-size 2048 --failure-injection-rate 50 --fake-metrics '{}' -v 4 \
    --lora-modules '{"name": "adapter", "path": "/x"}' --force-dummy-tokenizer
says 'timed by knob:time_to_first_token=200,inter_token_latency=20 '
says 'warning: --llm-d/fake-metrics: not modelled'
says 'note: --llm-d/force-dummy-tokenizer'
grep -q '"id":"my/model"' models && grep -q '"id":"adapter"' models
grep -q 'max_num_seqs=5,' info && grep -q 'num_gpu_blocks=2048' info
# As its manifests have them: lists of words, toggles with values, levels of words, its file,
# over which the command line goes.
cat >llmd.yaml <<'Y'
port: 8001
model: "Qwen/Qwen2-VL-2B-Instruct"
served-model-name:
- "model1"
- "model2"
max-loras: 2
max-cpu-loras: 5
max-num-seqs: 7
lora-modules:
- '{"name":"lora1","path":"/path/to/lora1"}'
- '{"name":"lora2","path":"/path/to/lora2"}'
mode: "random"
latency-calculator: per-token
time-to-first-token: "2s"
inter-token-latency: 1000ms
prefill-time-per-token: 250us
enable-kvcache: false
fake-metrics:
  running-requests: 16
  loras:
  - '{"running":"lora1,lora2","waiting":"lora3","timestamp":1257894567}'
seed: 100100100
Y
up --compat llm-d --config llmd.yaml --time-to-first-token=20ms --v=5 --enable-sleep-mode=true \
    --enable-kvcache=true --block-size=8 --event-batch-size=1 --render-url=http://localhost:8082 \
    --self-signed-certs=false --no-omni --data-parallel-size=1 \
    --failure-types rate_limit server_error
says 'timed by knob:inter_token_latency=1000,prefill_time_per_token=0.25,time_to_first_token=20 '
says 'warning: --llm-d/fake-metrics, --llm-d/data-parallel-size: not modelled'
! grep -q 'self-signed-certs\|omni' err
grep -q '"id":"model1"' models && grep -q '"id":"model2"' models && grep -q '"id":"lora2"' models
! grep -q 'Qwen2-VL' models
grep -q 'max_num_seqs=7,' info && grep -q 'block_size=8,' info && grep -q 'num_gpu_blocks=1024' info
up --compat llm-d --model m --served-model-name a b --enable-kvcache=false --no-enable-prefix-caching
grep -q '"id":"a"' models && grep -q '"id":"b"' models
printf 'model: m\nnonsense: 1\n' >odd.yaml
refused "odd.yaml: line 2: unknown setting 'nonsense'" --compat llm-d --config odd.yaml
refused "--time-to-first-token: 'fast' is no time" --compat llm-d --model m \
    --time-to-first-token fast
refused "none of vllm, llm-d" --compat other
