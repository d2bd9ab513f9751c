# Without arguments: the built-in workload on the built-in profile.
good
for word in 'TTFT' 'TPOT' 'ITL' 'E2E' 'queue' 'preemptions' 'prefix hits' 'peak KV use' \
    '^report: vtwin-report/ \(report.html, summary.json, requests.jsonl, steps.jsonl\)$'; do
    grep -Eq "$word" out || fail "no $word in the table"
done
[ "$(ls | LC_ALL=C sort | tr '\n' ' ')" = "err out vtwin-report " ] || fail "files: $(ls)"
[ "$(ls vtwin-report | tr '\n' ' ')" = "report.html requests.jsonl steps.jsonl summary.json " ] ||
    fail "report: $(ls vtwin-report)"
requests=$(sed -n 's/^  "requests": \([0-9]*\),/\1/p' vtwin-report/summary.json)
steps=$(sed -n 's/^  "steps": \([0-9]*\),/\1/p' vtwin-report/summary.json)
[ "$requests" -gt 0 ]
# One line of meta, then one for each request; ids are unique.
[ "$(wc -l <vtwin-report/requests.jsonl)" -eq $((requests + 1)) ]
[ "$(wc -l <vtwin-report/steps.jsonl)" -eq "$steps" ]
[ "$(sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' vtwin-report/requests.jsonl | sort -u | wc -l)" -eq "$requests" ]

# Flags change what they should.
good simulate --arrivals closed --concurrency 1 --json
grep -q '"preemptions": 0' out
good simulate --no-enable-prefix-caching --json
grep -q '"prefix_hit_rate": 0,' out
for flags in '--scheduling-policy priority' '--no-async-scheduling' \
    '--num-speculative-tokens 3 --speculative-acceptance 0.7' \
    '--num-speculative-tokens 2 --speculative-acceptance 0.5 --speculative-method ngram' \
    '--long-prefill-token-threshold 256' '--watermark 0.1' '--num-gpu-blocks 1200' \
    '--compat blis --latency blackbox:alpha=1000,1,500,beta=5000,10,20' \
    '--latency knob:time_to_first_token=100,inter_token_latency=20' '--latency=null:' '--quiet'; do
    # shellcheck disable=SC2086
    good simulate $flags
done
good profile list
grep -q qwen3-8b-h200 out
good profile show qwen3-8b-h200
good profile show qwen3-8b-h200 --json
good model list
grep -q blackbox out
grep -Eq '^trained-physics, dense( +[0-9.]+){6}$' out || fail "$(cat out)"
grep -Eq '^step, measured( +[0-9.]+){6}$' out || fail "$(cat out)"
