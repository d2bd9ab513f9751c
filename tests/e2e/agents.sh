# Sessions of agents: nothing begins before all that it waits for has ended and it has thought,
# in simulations and in front of a server.
trace=$VT_ROOT/examples/agents.jsonl

cat >check.py <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])][1:]
end = lambda r: r["arrival_ms"] + r["ttft_ms"] + sum(r["itl_ms"])
late = float(sys.argv[2])  # ms that a client may need
if sys.argv[3:] == ["plan"]:  # beginnings are numbered first, the others as they were recorded
    names = ["fix-a-bug:0", "a-question:0", "a-question:1", "fix-a-bug:1", "fix-a-bug:3",
             "fix-a-bug:2", "fix-a-bug:4", "fix-a-bug:5", "fix-a-bug:6"]
    rows = {names[int(r["id"].rpartition("-")[2])]: r for r in rows}
else:
    rows = {r["id"]: r for r in rows}
assert len(rows) == 9, len(rows)
f = lambda n: rows[f"fix-a-bug:{n}"]
for now, before, think in ((f(1), [f(0)], 500), (f(2), [f(1)], 200), (f(3), [f(0)], 600),
                           (f(4), [f(2), f(3)], 1000), (f(5), [f(4)], 500), (f(6), [f(4)], 600),
                           (rows["a-question:1"], [rows["a-question:0"]], 400)):
    gap = now["arrival_ms"] - max(end(b) for b in before) - think
    assert -0.01 <= gap <= late, (now["id"], gap)
PY

good simulate --trace "$trace" --latency linear:base=5000 --out report
python3 check.py report/requests.jsonl 0.01 || fail "simulate"
# A report replays to the same steps, though its rows do not say who waited.
good simulate --trace report/requests.jsonl --latency linear:base=5000 --out again
for run in report again; do # of those that come at once the first to end stands first
    sed 's/"prefill".*"waiting"//' $run/steps.jsonl >$run.steps
done
cmp report.steps again.steps || fail "the report replays to other steps"
# One session after the other: the second begins when nothing of the first is left.
good simulate --trace "$trace" --latency linear:base=5000 --concurrency 1 --out alone
python3 - <<'PY' || fail "--concurrency 1"
import json
rows = {r["id"]: r for r in map(json.loads, list(open("alone/requests.jsonl"))[1:])}
end = lambda r: r["arrival_ms"] + r["ttft_ms"] + sum(r["itl_ms"])
first = max(end(r) for i, r in rows.items() if i.startswith("fix"))
assert abs(rows["a-question:0"]["arrival_ms"] - first) < 1, (rows["a-question:0"]["arrival_ms"], first)
PY

bad 'the first 4 requests would be parts of sessions that are trees' simulate --trace "$trace" --num-prompts 4

serving --latency linear:base=500
good bench serve --base-url "$url" --model vtwin --dataset-name trace --dataset-path "$trace" --num-prompts 0 \
    --trace-out bench.jsonl
python3 check.py bench.jsonl 250 plan || fail "bench: $(cut -c1-120 bench.jsonl)"
# A sweep sends whole sessions at each load, also where a rate would have time for a part only.
vtwin bench sweep --rates 50 --seconds 0.05 --no-self-timed --base-url "$url" --model vtwin \
    --dataset-name trace --dataset-path "$trace" --num-prompts 0 --output-dir sweep
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -qE '^ +50 +9 +0 ' out || fail "$(cat out)"
grep -q 'sessions that are trees are not cut' err || fail "$(cat err)"
