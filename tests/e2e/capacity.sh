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
toy=(--latency linear:base=10000 --max-num-seqs 1 --no-async-scheduling
    --workload even.yaml --slo-ttft-p99 20)

# One at a time and 10 ms each: 100 a second.
"$VTWIN" capacity "${toy[@]}" --json >one.json
python3 - <<'P'
import json
a = json.load(open("one.json"))
assert 97 <= a["capacity"] <= 101, a["capacity"]
assert a["binding"] == "TTFT p99"
assert a["confidence_95"][0] <= a["capacity"] <= a["confidence_95"][1]
assert a["trials"] == 3 * len(a["points"])
# As simulate's summary has them.
for p in a["points"]:
    for m in "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms":
        assert list(p[m]) == ["mean", "p50", "p90", "p95", "p99"], p[m]
assert all(p["passed"] == 3 for p in a["points"] if p["rate"] <= a["capacity"])
P

for jobs in 1 2 4; do
    "$VTWIN" capacity --workload multiturn-starters --num-prompts 50 --rates 1,2,4 \
        --seeds 4 --jobs $jobs --json --csv "$jobs.csv" >"$jobs.json"
    cmp 1.json "$jobs.json"
    cmp 1.csv "$jobs.csv"
done
[ "$(wc -l <1.csv)" = 4 ]

"$VTWIN" capacity "${toy[@]}" --rates 50,90,200 --plot p.svg >table
grep -q '^capacity 90 req/s' table
grep -q '</svg>' p.svg
"$VTWIN" capacity "${toy[@]}" --slo-ttft-p99 5 | grep -q '^capacity 0: no rate'
# Two engines serve twice as much.
"$VTWIN" capacity "${toy[@]}" --instances 2 --rates 190,250 | grep -q '^capacity 190 '

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
