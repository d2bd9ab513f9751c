# --slo: limits, attainment and goodput in every command that has latencies; exit 1 where
# one is broken.
load=(--workload sharegpt --request-rate 10 --num-prompts 200)
good simulate "${load[@]}" --slo ttft-p99=2s,tpot-p99=100ms,e2e-p99=100s
grep -Eq '^limits +TTFT p99 [0-9.]+ of 2000 ms kept, TPOT p99 [0-9.]+ of 100 ms kept, E2E' out ||
    fail "$(cat out)"
grep -Eq '^attainment +100.00 % of requests, goodput [0-9.]+ req/s$' out || fail "$(cat out)"

vtwin simulate "${load[@]}" --slo ttft-p99=30ms,tpot-p99=100ms --json
[ "$status" -eq 1 ] || fail "exit $status with a broken limit"
grep -Eq '^vtwin: TTFT p99 is [0-9.]+ ms, above the limit of 30 ms$' err || fail "$(cat err)"
python3 - <<'P' || fail "the JSON does not tell of the limits"
import json
d = json.load(open("out"))
s = d["slo"]
assert s["limits_ms"] == {"ttft_p99": 30, "tpot_p99": 100} and not s["kept"]
assert 0 < s["attainment"] < 0.99
assert abs(s["goodput_req_per_s"] - s["attainment"] * d["req_per_s"]) < 1e-3
P
# The share of requests is counted one by one.
vtwin simulate "${load[@]}" --slo ttft-p99=30ms --out report --json
python3 - <<'P' || fail "attainment is not what requests say"
import json
d = json.load(open("report/summary.json"))
rows = [json.loads(l) for l in open("report/requests.jsonl")][1:]
kept = sum(r["ttft_ms"] <= 30 for r in rows)
assert abs(d["slo"]["attainment"] - kept / len(rows)) < 1e-9
P

# capacity and tune take the same words, and the old flags as well.
one=(--input-len 100 --output-len 20 --num-prompts 50 --request-rate 2 --seeds 1 --json)
good capacity "${one[@]}" --slo ttft-p99=0.5s
cp out named
python3 -c "import json; s = json.load(open('out'))['slo_ms']; assert s['ttft_p99'] == 500 and s['tpot_p99'] == 0" ||
    fail "$(cat out)"
good capacity "${one[@]}" --slo-ttft-p99 500 --slo-tpot-p99 0
cmp out named || fail "two spellings, two answers"
good capacity "${one[@]}" --slo ttft-p99=9s --slo-ttft-p99 500ms
cmp out named || fail "a single flag does not go over --slo"
search=(tune --num-prompts 30 --max-num-seqs 8 --max-num-batched-tokens 2048 --json)
good "${search[@]}" --slo e2e-p99=2.5s
cp out named
good "${search[@]}" --max-latency-allowed-ms 2500
cmp out named || fail "two spellings, two answers"
good "${search[@]}"
! cmp -s out named || fail "the limit of tune changes nothing"

# bench judges a live server.
serving --profile qwen3-8b-h200
send=(bench serve --base-url "$url" --num-prompts 4 --input-len 20 --output-len 4 --vllm-only)
vtwin "${send[@]}" --slo ttft-p99=60s,e2e-p99=60s
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -q '^attainment   100.00 % of requests' out || fail "$(cat out)"
vtwin "${send[@]}" --slo e2e-p99=1ms
[ "$status" -eq 1 ] || fail "exit $status with a broken limit"
grep -q 'E2E p99 [0-9.]* of 1 ms BROKEN' out || fail "$(cat out)"
grep -q '^attainment   0.00 %' out || fail "$(cat out)"

bad "'ttft=5ms' is not ttft-p99=TIME" simulate --slo ttft=5ms
bad "'tpot-p99' is not" capacity --slo ttft-p99=5ms,tpot-p99
bad '0.5 ms\? give 500' simulate --slo ttft-p99=0.5
bad 'not a time' tune --slo ttft-p99=soon
