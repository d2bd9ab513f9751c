# vtwin bench serve against vtwin serve, as a script that knows `vllm bench serve` uses it.
serving --latency null --served-model-name tiny

# ---- the table and the file ----
vtwin bench serve --backend vllm --base-url "$url" --model tiny --num-prompts 12 \
    --request-rate 100 --random-input-len 32 --random-output-len 4 --seed 1 \
    --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,99.9 \
    --goodput ttft:60000 e2el:60000 --metadata tp=2 note=x --trust-remote-code \
    --save-result --save-detailed --result-dir results --label run
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
grep -q '^vtwin bench: --trust-remote-code is of vllm bench' err || fail "$(cat err)"
grep -q '^============ Serving Benchmark Result ============$' out
grep -q '^Successful requests:                     12        $' out || fail "$(cat out)"
grep -q '^Total generated tokens:                  48        $' out
grep -q '^Request rate configured (RPS):           100.00    $' out
grep -Eq '^Request goodput \(req/s\): +[1-9]' out
grep -Eq '^P99.9 E2EL \(ms\): +[0-9.]+ +$' out
grep -Eq '^Send lag +[0-9.]+ +[0-9.]+ +[0-9.]+$' out
file=$(ls results/run-100.0qps-tiny-*.json) || fail "no result: $(ls results)"
python3 - "$file" <<'P' || fail "the result is not as vLLM's"
import json, sys
d = json.load(open(sys.argv[1]))
want = ["date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id",
        "num_prompts", "tp", "note", "request_rate", "burstiness", "max_concurrency",
        "duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
        "request_throughput", "request_goodput", "output_throughput",
        "total_token_throughput", "input_lens", "output_lens", "ttfts", "itls",
        "start_times", "generated_texts", "errors", "max_output_tokens_per_s",
        "max_concurrent_requests", "rtfx"]
assert list(d)[:len(want)] == want, list(d)
assert list(d)[-1] == "vtwin" and "p99.9_itl_ms" in d
assert d["input_lens"] == [32] * 12 and d["output_lens"] == [4] * 12
assert all(len(x) == 3 for x in d["itls"]) and all(d["generated_texts"])
assert d["request_rate"] == 100.0 and d["max_concurrency"] is None and d["tp"] == "2"
P

# ---- a chat at full speed, one more line for each run ----
for _ in 1 2; do
    vtwin bench serve --backend openai-chat --base-url "$url" --num-prompts 8 \
        --max-concurrency 2 --random-input-len 16 --random-output-len 3 \
        --num-warmups 2 --ready-check-timeout-sec 20 --append-result \
        --result-filename all.jsonl --disable-tqdm --vllm-only
    [ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
done
grep -q '^Maximum request concurrency:             2         $' out
! grep -q 'vtwin: the same' out || fail "ours although --vllm-only"
python3 -c '
import json
for line in open("all.jsonl"):
    d = json.loads(line)
    assert d["completed"] == 8 and d["request_rate"] == "inf", d
    assert d["steady_state"]["window"]["target_concurrency"] == 2
' || fail "$(cat all.jsonl)"

# ---- every dataset ----
printf '%s\n' '{"prompt":"one","output_tokens":2}' '{"prompt":"two","output_tokens":3}' >c.jsonl
cat >s.json <<'J'
[{"conversations":[{"value":"what is there to be seen in the sea"},{"value":"fish and ships, and what is lost"}]}]
J
printf '{"timestamp":%s,"input_length":20,"output_length":2,"hash_ids":[1,2]}\n' 0 10 20 >m.jsonl
send() {
    local want=$1
    shift
    vtwin bench serve --base-url "$url" --model tiny "$@"
    [ "$status" -eq 0 ] || fail "exit $status from $*: $(cat err)"
    grep -Eq "^Successful requests: +$want +\$" out || fail "not $want from $*: $(cat out)"
    grep -Eq '^Failed requests: +0 +$' out || fail "failures from $*: $(cat out)"
}
send 2 --dataset-name custom --dataset-path c.jsonl --num-prompts 0 --custom-output-len -1
grep -Eq '^Total generated tokens: +5 +$' out || fail "$(cat out)"
send 3 --dataset-name sharegpt --dataset-path s.json --num-prompts 3
send 20 --dataset-name prefix_repetition --num-prompts 20 --output-len 2
send 3 --dataset-name timed_trace --dataset-path m.jsonl --timed-trace-sec-multiplier 0.001
grep -Eq '^Total input tokens: +60 +$' out || fail "$(cat out)"
send 14 --dataset-name trace --dataset-path "$VT_ROOT/tests/trace/data/closed-c2.trace.jsonl.gz" \
    --trace-speed 1000 --trace-out again.jsonl
good inspect validate again.jsonl
send 6 --dataset-name multi-turn --num-conversations 3 --num-turns 2 --starter-tokens 20 \
    --user-tokens 5 --turn-output-tokens 2 --max-active-conversations 2 --backend openai-chat
grep -Eq '^ +2 +3 +0 ' out || fail "no table of turns: $(cat out)"
send 5 --num-prompts 5 --prompt-token-ids --input-len 9 --output-len 2 --probe-request-rate 50 \
    --lora-modules tiny tiny --lora-assignment round-robin --temperature 0 \
    --extra-body '{"min_tokens": 2}' --header X-A=1 X-B=2 --lifecycle-out perf
[ -s perf/summary_lifecycle_metrics.json ] || fail "no lifecycle report"

# ---- prompts have their length by the server's tokenizer, whoever made them ----
first=$url
serving "$VT_ROOT/tests/cases/tiny-qwen3" --latency null --served-model-name tiny
for flags in "" "--tokenizer $VT_ROOT/tests/cases/tiny-qwen3"; do
    # shellcheck disable=SC2086 # two words
    vtwin bench serve --base-url "$url" --num-prompts 5 --input-len 60 --output-len 2 $flags \
        --save-result --save-detailed --result-filename lens.json
    [ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
    python3 -c '
import json
lens = json.load(open("lens.json"))["input_lens"]
assert all(abs(n - 60) <= 3 for n in lens), lens
' || fail "other lengths with '$flags'"
done
url=$first

# ---- when ----
good bench serve --dry-run --num-prompts 4 --request-rate 8 --burstiness inf --input-len 10
grep -q '^4 requests in 4 sessions, 40 prompt and 512 output tokens, last first request at 0.500000 s$' out ||
    fail "$(cat out)"
cp out first
good bench serve --dry-run --num-prompts 4 --request-rate 8 --burstiness inf --input-len 10
cmp out first

# ---- what is refused, and what fails ----
bad "'x' is not a whole number" bench serve --base-url "$url" --num-prompts x
bad 'is none of random, ' bench serve --dataset-name rndom --dry-run
bad 'needs a file' bench serve --dataset-name custom --dry-run
bad 'which\?' bench serve --dry-run --request-rate 1 --ramp-up-strategy linear
bad 'not ttft:MS' bench serve --dry-run --goodput ttfx:1
bad 'is no http:// or https:// URL' bench serve --base-url localhost --model x
bad 'did you mean' bench serv
vtwin bench serve --base-url http://127.0.0.1:1 --model x --num-prompts 1
[ "$status" -eq 3 ] || fail "exit $status without a server"
grep -q 'cannot connect to 127.0.0.1:1' err || fail "$(cat err)"
vtwin bench serve --base-url "$url" --model nobody --num-prompts 2 --input-len 5
[ "$status" -eq 3 ] || fail "exit $status where every request fails"
grep -Eq '^Failed requests: +2 +$' out || fail "$(cat out)"
grep -q '^vtwin: none of 2 requests succeeded: 404 ' err || fail "$(cat err)"

# ---- stopped by hand ----
"$VTWIN" bench serve --base-url "$url" --model tiny --num-prompts 1000 --request-rate 20 \
    --input-len 5 --output-len 2 --progress >out 2>err &
bench=$!
for _ in $(seq 200); do # until the progress line tells of a request that is done
    grep -Eq '[1-9][0-9]* of 1000 done' err && break
    sleep 0.1
done
kill -TERM "$bench" # a script's children ignore SIGINT
status=0
wait "$bench" || status=$?
[ "$status" -eq 143 ] || fail "exit $status after a signal: $(cat err)"
grep -q 'stopped; this is what there is' err || fail "$(cat err)"
grep -Eq '^Successful requests: +[1-9]' out || fail "nothing printed after a signal: $(cat out)"

# An address as OpenAI's clients have it.
vtwin bench serve --base-url "$url/v1/" --num-prompts 2 --input-len 5 --output-len 2 --vllm-only
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -Eq '^Successful requests: +2' out || fail "$(cat out)"

# A rate is that of requests: four conversations of five turns at two a second take ten.
good bench serve --dry-run --dataset-name multi-turn --num-conversations 4 --num-turns 5 --request-rate 2
grep -q 'last first request at 10.000000 s' out || fail "$(tail -n 1 out)"

# --twin: beside what was measured, what simulate predicts of the same requests.
serving --profile qwen3-8b-h200 --served-model-name timed
vtwin bench serve --base-url "$url" --model timed --num-prompts 12 --request-rate 20 \
    --random-input-len 200 --random-output-len 8 --twin '--profile qwen3-8b-h200' \
    --save-result --result-filename twin.json
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
grep -qx "Twin: qwen3-8b-h200, by the client's clock" out || fail "$(cat out)"
grep -q '^basis  ' out || fail "no word on what it stands on: $(cat out)"
python3 - <<'P' || fail "the result does not hold the twin's"
import json
d = json.load(open("twin.json"))
assert d["completed"] == 12
t = d["twin"]
assert t["predicted"]["requests"] == t["measured"]["requests"] == 12, t
assert t["predicted"]["output_tokens"] == 96 and t["predicted"]["ttft_ms"]["mean"] > 5, t
P
# A twin that fails when all is measured: that is said, and what was measured is kept.
vtwin bench serve --base-url "$url" --model timed --dataset-name random \
    --num-prompts 4 --random-input-len 20 --random-output-len 4 \
    --twin 'llama-3.1-405b --gpu L4' --save-result --result-filename kept.json
[ "$status" -eq 2 ] || fail "exit $status: $(cat err)"
grep -q "^vtwin: --twin 'llama-3.1-405b --gpu L4': no room for a KV cache" err || fail "$(cat err)"
python3 -c 'import json; d = json.load(open("kept.json")); assert d["completed"] == 4 and "twin" not in d'
bad "--twin '--gpo H200': unknown flag" bench serve --base-url "$url" --twin '--gpo H200'
bad "nothing is measured with --dry-run" bench serve --dry-run --twin '--gpu H200'
