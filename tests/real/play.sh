# A Python frontend with the twin behind it: everything a client may ask, and what vLLM's
# own tools make of it.
read -r events replay <<<"$(ports 2)"
blocks=512
play --log-requests --num-gpu-blocks $blocks --enable-kv-cache-events \
    --kv-events-endpoint "tcp://*:$events" --kv-events-replay-endpoint "tcp://127.0.0.1:$replay"
python_frontend
wait_until_up
check answers "$url"
check metrics "$url" "$tests/metrics-$VERSION.txt"
check controls "$url"
check kv_events "$url" "tcp://127.0.0.1:$events" "tcp://127.0.0.1:$replay" $blocks

# vLLM's own load generator. Its times are not judged: this machine may be busy.
"${vllm[@]}" bench serve --backend vllm --base-url "$url" --endpoint /v1/completions \
    --model tiny --tokenizer "$model" --dataset-name random --random-input-len 64 \
    --random-output-len 32 --num-prompts 60 --request-rate 20 --ignore-eos \
    --save-result --result-filename bench.json >bench.log 2>&1 || fail "vllm bench serve: $(tail -n 5 bench.log)"
"$python" - <<'END' || fail "what vllm bench serve reports"
import json
r = json.load(open("bench.json"))
print(f"ok bench: TTFT {r['median_ttft_ms']:.1f} ms, TPOT {r['median_tpot_ms']:.2f} ms (medians)")
assert r["completed"] == 60 and r["failed"] == 0 and r["total_output_tokens"] == 60 * 32, r
assert r["median_ttft_ms"] > 1 and r["median_tpot_ms"] > 1, r
END

grep -q 'ERROR.*\(EngineDead\|decode\|Traceback\)' frontend.log && fail "errors in frontend.log"
both_end
aborted=$(sed -n 's/.* \([0-9]*\) aborted.*/\1/p' play.log | tail -n 1)
[ "$aborted" -ge 7 ] || fail "$aborted requests aborted"
