# vtwin bench compare: results of vllm bench side by side, and its verdict as exit code.
a=$VT_ROOT/tests/cases/bench/result.json
b=$VT_ROOT/tests/cases/bench/result-chat.json

good bench compare "$a" "$b"
grep -Eq '^p99_ttft_ms +337\.17 +188\.27 +-148\.90 +-44\.2 better$' out || fail "$(cat out)"
grep -q '^not in B: p50_ttft_ms, ' out || fail "what is missing is not told"
good bench compare "$a" "$b" --json
python3 - <<'P' || fail "the JSON does not say what the table says"
import json
d = json.load(open("out"))
m = {x["name"]: x for x in d["metrics"]}
assert m["p99_ttft_ms"]["others"][0]["verdict"] == "better"
assert m["p50_ttft_ms"]["others"][0]["value"] is None
assert d["tolerance_percent"] is None
P

# A judge has an exit code.
good bench compare "$a" "$a" --tolerance 0
vtwin bench compare "$a" "$b" --tolerance 5
[ "$status" -eq 1 ] || fail "exit $status though median_ttft_ms is 12 % worse"
grep -q 'median_ttft_ms: B is worse by 12.1 %' out || fail "$(cat out)"
grep -q 'worse by more than 5 % in 2 metrics' err || fail "$(cat err)"
good bench compare "$a" "$b" --tolerance 5 --metrics p99_ttft_ms,tpot

# --append-result's file holds several.
{ cat "$a"; echo; cat "$b"; echo; } >both.jsonl
good bench compare both.jsonl
grep -q '^B: both.jsonl:2, tiny' out || fail "$(cat out)"

bad 'only one result' bench compare "$a"
bad 'compare what' bench compare
bad 'No such file' bench compare "$a" missing.json
echo 'not json' >odd.json
bad 'odd.json: line 1' bench compare "$a" odd.json
bad 'not for bench compare' bench compare "$a" "$b" --rates 1
