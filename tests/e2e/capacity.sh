#!/bin/bash
# vtwin capacity: its answer does not depend on --jobs, its files are there, and bad
# flags are told.
set -euo pipefail

cat >even.yaml <<'Y'
requests: 200
arrival: {process: constant, rate: 1}
prompt: 8
output: 1
Y
toy=(--latency linear:base=100000 --max-num-seqs 1 --no-async-scheduling
    --workload even.yaml --slo-ttft-p99 200)

# One at a time and 100 ms each: 10 a second, for twenty minutes as for the first.
"$VTWIN" capacity "${toy[@]}" --json >one.json
python3 - <<'P'
import json
a = json.load(open("one.json"))
assert 9.7 <= a["capacity"] <= 10.1, a["capacity"]
assert a["binding"] == "TTFT p99"
assert a["confidence_95"][0] <= a["capacity"] <= a["confidence_95"][1]
assert a["interval"][0] <= a["confidence_95"][0] and not a["at_least"]
assert a["run_requests"] > 200 and a["run_s"] > 1000, a["run_s"]
# As simulate's summary has them.
for p in a["points"]:
    for m in "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms":
        assert list(p[m]) == ["mean", "p50", "p90", "p95", "p99"], p[m]
assert all(p["passed"] == p["runs"] for p in a["points"] if p["rate"] <= a["capacity"])
P

for jobs in 1 2 4; do
    "$VTWIN" capacity --workload multiturn-starters --num-prompts 50 --rates 1,2,4 --once \
        --seeds 4 --jobs $jobs --json --csv "$jobs.csv" >"$jobs.json"
    cmp 1.json "$jobs.json"
    cmp 1.csv "$jobs.csv"
done
[ "$(wc -l <1.csv)" = 4 ]

"$VTWIN" capacity "${toy[@]}" --rates 5,9,20 --plot p.svg >table
grep -q '^capacity 9 req/s' table
grep -Eq '^over [0-9]{3,} s, [0-9]{4,} requests in each of 3 runs' table
grep -q '</svg>' p.svg
"$VTWIN" capacity "${toy[@]}" --rates 5,9 >table
grep -q '^capacity at least 9 req/s: nothing breaks' table
# These 200 are over before 10.4 a second has become too much: it is said what it is of.
"$VTWIN" capacity "${toy[@]}" --slo-ttft-p99 2s --rates 10.4 --once >table
grep -q '^of these requests as they are: in the long run it may be less' table
# A limit that nothing keeps: exit 1, after the table, with the reason.
status=0
"$VTWIN" capacity "${toy[@]}" --slo-ttft-p99 50 >table 2>err || status=$?
[ $status = 1 ]
grep -q 'no rate keeps the limits: TTFT p99 is 100 ms at 0.00[0-9]* req/s, the lowest tried; its limit is 50 ms' err
# A sketch is soon there, says what it is, and is not far off.
"$VTWIN" capacity --sketch --json >sketch
"$VTWIN" capacity --sketch | grep -qx 'a sketch by runs that are too short to be sure of'
python3 - sketch <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["sketch"] and d["trials"] <= 10 and 0.7 * 34 < d["capacity"] < 1.4 * 34, d["capacity"]
assert d["points"][0]["rate"] < 0.1 * d["capacity"] and d["failed_rate"] > d["capacity"]
assert d["vllm_serve"].startswith("vllm serve Qwen/Qwen3-8B --max-num-seqs "), d["vllm_serve"]
END
# Two engines serve twice as much.
"$VTWIN" capacity "${toy[@]}" --instances 2 --rates 19,25 | grep -q '^capacity 19 '
# What is being done is said with --progress, from the first second on, and not without.
"$VTWIN" capacity --progress --seeds 2 --tolerance 0.1 2>err >table
grep -Eq '^[0-9.]+ req/s: [0-9]+ runs? of [0-9]+ requests, about [0-9.]+ s; [0-9]+ requests simulated in [0-9.]+ s$' err
grep -q '^basis  *measured; within E2E' table
grep -Eq '^capacity 3[0-9.]+ req/s .95 % confidence [0-9.]+ to [0-9.]+; [0-9.]+ to [0-9.]+ with [0-9]+ % for the model.: ' table

fails() { # MESSAGE FLAGS...
    local want=$1 status=0
    shift
    "$VTWIN" capacity "$@" >out 2>err || status=$?
    [ $status = 2 ] && grep -q -- "$want" err || {
        echo "capacity $*: status $status, $(cat err)"
        exit 1
    }
}
fails 'rates' --rates 2,1
fails 'rates' --rates 1,,2
fails 'rates' --rates 0
fails 'seeds' --seeds 0
fails 'tolerance' --tolerance 0
fails 'slo-tpot-p99' --slo-tpot-p99 -1
fails 'give one of them' --workload a --trace b
fails 'nowhere.yaml' --workload nowhere.yaml
fails 'has .* requests' --trace "$VT_ROOT/tests/trace/data/requests.csv" --num-prompts 601
