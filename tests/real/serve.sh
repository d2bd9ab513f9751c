# shellcheck shell=bash disable=SC2154
# vtwin serve beside a real API server: the same answers to the same requests, good and bad.
# Steps are slow, so that a chunk is a token.
port=$tap # of no recorder here
own=http://127.0.0.1:$port
start serve "$VTWIN" serve "$model" --served-model-name tiny --max-model-len 2048 \
    --vllm-version "$VERSION" --port "$port" --latency linear:base=15000
serve=$pid
wait_for 20 server curl -fsS "$own/health"
python_frontend --enable-auto-tool-choice --tool-call-parser hermes
play --latency linear:base=15000
wait_until_up
check same "$url" "$own"
both_end
ends_well serve "$serve"

# vLLM's own load generator against vtwin serve: completions and chats, every prompt and token
# counted. Its times are not judged: this machine may be busy.
start serve "$VTWIN" serve "$model" --served-model-name tiny --max-model-len 2048 \
    --vllm-version "$VERSION" --port "$port"
serve=$pid
wait_for 20 server curl -fsS "$own/health"

# bench BACKEND ENDPOINT ARGS: 40 requests of 24 tokens each.
bench() {
    local backend=$1 endpoint=$2
    shift 2
    "${vllm[@]}" bench serve --backend "$backend" --base-url "$own" --endpoint "$endpoint" \
        --model tiny --tokenizer "$model" --dataset-name random --random-input-len 64 \
        --random-output-len 24 --num-prompts 40 --ignore-eos --save-result \
        --result-filename bench.json "$@" >"bench-$backend.log" 2>&1 ||
        fail "vllm bench serve: $(tail -n 5 "bench-$backend.log")"
    "$python" - "$backend" <<'END' || fail "what vllm bench serve reports"
import json, sys
r = json.load(open("bench.json"))
print(f"ok {sys.argv[1]}: TTFT {r['median_ttft_ms']:.1f} ms, TPOT {r['median_tpot_ms']:.2f} ms (medians)")
assert r["completed"] == 40 and r["failed"] == 0 and r["total_output_tokens"] == 40 * 24, r
END
}

bench openai /v1/completions --request-rate 20
bench openai-chat /v1/chat/completions --max-concurrency 8
# A look that no model is named in: the server tells which one it has.
"${vllm[@]}" bench serve --base-url "$own" --tokenizer "$model" --dataset-name random \
    --random-input-len 16 --random-output-len 4 --num-prompts 4 >bench-unnamed.log 2>&1 ||
    fail "vllm bench serve without a model: $(tail -n 5 bench-unnamed.log)"
grep -q '^Successful requests: *4 *$' bench-unnamed.log || fail "bench-unnamed.log"
ends_well serve "$serve"
