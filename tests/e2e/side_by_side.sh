# vtwin compare: results of simulate, capacity and bench; and what else takes a report.
for seqs in 8 64; do
    for seed in 1 2 3; do
        good simulate --workload chat --request-rate 12 --num-prompts 100 --seed "$seed" \
            --max-num-seqs "$seqs" --out "seqs-$seqs/$seed" --quiet
    done
done

# Two reports: what differs is said, noise is not known.
good compare seqs-8/1 seqs-64/1
grep -Eqx 'max_num_seqs +8 +64' out || fail "$(cat out)"
! grep -Eq '^(seed|block_size) ' out || fail "settings that are equal, or seeds: $(cat out)"
grep -Eq '^ttft_ms.p99 .* better$' out || fail "$(cat out)"
grep -q '^one run of a side' out || fail "$(cat out)"

# Folders of runs.
good compare seqs-8 seqs-64
grep -qx 'A: seqs-8/1/summary.json and 2 more runs' out || fail "$(cat out)"
grep -q '^noise: ' out || fail "$(cat out)"
mkdir -p same && cp -r seqs-64/1 seqs-64/2 same/ && cp seqs-64/3/summary.json same/third.json
good compare seqs-64 same --tolerance 0
grep -qx 'no setting that is stated differs' out || fail "$(cat out)"
vtwin compare seqs-64 seqs-8 --tolerance 10 --json
[ "$status" -eq 1 ] || fail "exit $status though it is worse"
python3 - <<'P' || fail "the JSON does not say it"
import json
d = json.load(open("out"))
assert d["settings"] == [{"name": "max_num_seqs", "values": ["64", "8"]}], d["settings"]
assert [r["runs"] for r in d["results"]] == [3, 3] and d["worse"] > 0
m = {x["name"]: x for x in d["metrics"]}
assert m["ttft_ms.p99"]["others"][0]["noise"] > 0
P

# Capacities and benchmarks; `bench compare` is the same command.
for seqs in 8 64; do
    good capacity --workload chat --num-prompts 100 --rates 2,4 --seeds 1 --json --max-num-seqs $seqs
    cp out "capacity-$seqs.json"
done
good compare capacity-8.json capacity-64.json
grep -Eq '^capacity +[0-9.]+ +[0-9.]+' out || fail "$(cat out)"
good bench compare seqs-8 seqs-64
cp out by-bench
good compare seqs-8 seqs-64
cmp out by-bench || fail "two commands"

# A report stands for its trace.
good inspect stats seqs-8/1
good inspect validate seqs-8/1
grep -q 'seqs-8/1/requests.jsonl: a trace of 100 requests' out || fail "$(cat out)"
good inspect convert seqs-8/1 -o list.csv
good inspect perfetto seqs-8/1 -o chrome.json
grep -q '100 requests and [0-9]* steps' out || fail "$(cat out)"
good simulate --trace seqs-8/1 --json
grep -q '"requests": 100' out || fail "$(cat out)"

# validate takes a report for an experiment, and calls it what it is. With the seed that
# validate takes, the engine that made it is not off; another setting is.
good simulate Qwen/Qwen3-8B --gpu H200 --workload chat --request-rate 6 --num-prompts 60 \
    --max-num-seqs 8 --seed 42 --out made --quiet
vtwin validate --data-dir made --output-dir judged --adapters vtwin-step --json
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -q 'made: simulated by vtwin, not measured' err || fail "$(cat err)"
! grep -q "clients' clocks" err || fail "a simulation has no clients: $(cat err)"
python3 - <<'P' || fail "the report against itself"
import csv
rows = list(csv.DictReader(open("judged/error_records.csv")))
assert rows and all(float(r["mape"]) < 1e-3 for r in rows), rows
assert {r["workload"] for r in rows} == {"chat (simulated)"}, rows[0]
P
good validate --data-dir made --output-dir other --adapters vtwin-step --max-num-seqs 64 --quiet
python3 - <<'P' || fail "another setting is no other"
import csv
assert max(float(r["mape"]) for r in csv.DictReader(open("other/error_records.csv"))) > 5
P
good simulate --latency linear:base=1000 --num-prompts 10 --workload chat --out inline --quiet
vtwin validate --data-dir inline --output-dir none
[ "$status" -eq 2 ] || fail "exit $status"

mkdir empty
bad 'empty: no result in it' compare empty seqs-8
bad 'compare what' compare
bad 'only one result' compare seqs-8
bad 'gone' compare seqs-8 gone
