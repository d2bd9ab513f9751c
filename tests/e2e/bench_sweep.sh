# vtwin bench sweep against vtwin serve: files of every run, and what all have in common.
serving --latency null

vtwin bench sweep --rates 20,40,inf --seconds 0.5 --num-prompts 30 --base-url "$url" \
    --random-input-len 32 --random-output-len 4 --output-dir sweep \
    --lifecycle-out sweep/perf --trace-out t.jsonl.gz
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
[ "$(grep -cE '^ +(20|40|inf) +[0-9]+ +0 ' out)" -eq 3 ] || fail "$(cat out)"
for file in rate-20.json rate-40.json rate-inf.json rate-20.t.jsonl.gz summary.csv \
    summary.json sweep.png sweep.svg perf/summary_lifecycle_metrics.json \
    perf/stage_2_lifecycle_metrics.json perf/per_request_lifecycle_metrics.json; do
    [ -s "sweep/$file" ] || fail "no $file"
done
[ "$(wc -l <sweep/summary.csv)" -eq 4 ] || fail "$(cat sweep/summary.csv)"
python3 - <<'P' || fail "results do not say what was asked for"
import json
for rate, n in ((20.0, 10), (40.0, 20), ("inf", 30)):
    d = json.load(open("sweep/rate-%s.json" % (rate if rate == "inf" else int(rate))))
    assert d["request_rate"] == rate and d["completed"] == n, (rate, d["completed"])
    assert d["total_output_tokens"] == 4 * n and "p99_e2el_ms" in d
P
good bench compare sweep/summary.json
good inspect validate sweep/rate-20.t.jsonl.gz
good inspect convert sweep/perf/per_request_lifecycle_metrics.json -o back.jsonl
grep -q '^60 requests from inference-perf' out || fail "$(cat out)"

vtwin bench sweep --concurrencies 1,2 --num-prompts 6 --base-url "$url" \
    --random-input-len 32 --random-output-len 4 --output-dir by-concurrency
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
[ -s by-concurrency/concurrency-2.json ] || fail "no result of the second run"

bad 'sweep over what' bench sweep --base-url "$url"
bad 'sweep over what' bench sweep --rates 1 --concurrencies 2 --base-url "$url"
bad "'0' is no rate" bench sweep --rates 1,0 --base-url "$url"
bad "says what --request-rate would" bench sweep --rates 1 --request-rate 2 --base-url "$url"
bad "dry-run is for bench serve" bench sweep --rates 1 --dry-run
