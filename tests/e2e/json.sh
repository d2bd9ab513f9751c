# The keys of the JSON summary, in their order: a promise to programs.
cat >want <<'END'
requests
duration_s
req_per_s
output_tok_per_s
total_tok_per_s
prompt_tokens
output_tokens
ttft_ms
tpot_ms
itl_ms
e2e_ms
queue_ms
preemptions
prefix_hit_rate
kv_usage_peak
steps
workload
profile
seed
version
vllm_version
basis
expected_error_pct
settings
END
keys() { sed -n 's/^  "\([a-z0-9_]*\)":.*/\1/p' "$1"; }

good simulate --json --seed 3 --out report
keys out | diff want - || fail "other keys on stdout"
cmp out report/summary.json
grep -q '"seed": 3,' out
grep -Eq '"ttft_ms": \{"mean": [0-9.]+, "p50": [0-9.]+, "p90": [0-9.]+, "p95": [0-9.]+, "p99": [0-9.]+\}' out
# Our own strict reader is the judge of well-formedness: a profile that is no profile
# fails later than one that is no JSON.
cp out summary.json
vtwin profile show summary.json
! grep -q 'line .*expected' err || fail "not JSON: $(cat err)"

good simulate --trace report/requests.jsonl --json --compare
printf '%s\n' predicted simulated error_percent | diff - <(keys out)
