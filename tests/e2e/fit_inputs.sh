# fit takes what people have: by content, not by name, and what belongs together together.
data=$VT_ROOT/tests/trace/data
taken() { grep -Eq "^captures  $1, " out || fail "not $1 captures: $(cat out err)"; }
told() { grep -Eq -- "$1" out || fail "'$1' is not in: $(cat out)"; }

# A step log and its trace under any names: their ids belong together. The same profile.
good fit "$data/closed-c2.steps.jsonl.gz" "$data/closed-c2.trace.jsonl.gz" --name x -o named.json
steps=$(grep -oE '^captures  1, [0-9]+ steps' out)
mkdir any
cp "$data/closed-c2.steps.jsonl.gz" any/b
cp "$data/closed-c2.trace.jsonl.gz" any/a.log
good fit any --name x -o any.json
[ "$(grep -oE '^captures  1, [0-9]+ steps' out)" = "$steps" ] || fail "$(cat out)"
[ "$(sed 's/"a.log"/"closed-c2"/' any.json)" = "$(cat named.json)" ] || fail "$(diff any.json named.json)"

# Another run's log beside them stays by itself, and so does one of another directory.
cp "$data/closed-c2.steps.jsonl.gz" any/other.steps.jsonl.gz
zcat "$data/closed-c2.trace.jsonl.gz" | sed 's/"id":"/&z/' >any/other.trace.jsonl
rm any/b
good fit any --no-cv
taken 2
told "^a.log " # rebuilt from its tokens
rm -r any

# A report of simulate.
good simulate --seed 3 --out made
good fit made --no-cv -o p.json
taken 1
told '^made  '
[ "$(grep -oE '[0-9]+ steps' out | head -n 1)" != '0 steps' ] || fail "$(cat out)"
bad 'summary.json: a summary of vtwin simulate' fit made/summary.json
mkdir less
cp made/summary.json less/
bad 'less: no trace, step log.*summary.json is a summary of vtwin simulate' fit less
rm -r made less

# What bench leaves of one run: the client's trace and the result tell of the same.
mkdir run
cp "$data/vllm-bench/result.json.gz" run/
good inspect convert run/result.json.gz -o run/client.jsonl
vtwin fit run
taken 1
told 'note .*result.json.gz: the same requests as in run/client.jsonl, left out'

# Times at a client do not blur the engine's own steps.
cp "$data"/closed-c2.*.gz run/
vtwin fit run --no-cv
taken 1
told "note .*: its times were taken at a client; left out"
rm -r run

# Spans as operands, in any mix.
good fit --otlp "$data/otlp-close10.jsonl.gz"
cp out flagged
good fit "$data/otlp-close10.jsonl.gz"
diff out flagged >/dev/null || fail "spans as an operand are other spans"

# Reports of load generators, and what lies beside them; what failed is counted.
vtwin fit "$data/inference-perf" --no-cv
taken 2
told '^per_request_lifecycle_metrics:concurrent-4 '
told '^note .*per_request.*: 2 requests that failed, were aborted or gave no token are left out'
good fit "$data/inference-perf-0.7.json.gz" -o p.json
told ': 4 requests that failed'
vtwin fit "$data/aiperf" --no-cv
taken 1
told ': 2 requests that failed'
vtwin fit "$data/vllm-bench" # one of the two has summaries only
taken 1
# First and last tokens: no steps are made up.
vtwin fit "$data/guidellm" --no-cv -o p.json --force
[ "$status" -eq 0 ] || fail "$(cat err)"
taken 2
told 'no step can be seen in them, so the model was found by simulation'
told '^benchmarks:concurrent-4 '
told ': 8 requests that failed'
vtwin simulate --profile p.json --num-gpu-blocks 40000
[ "$status" -eq 0 ] || fail "$(cat err)"
bad 'knob needs the times of single tokens' fit "$data/guidellm" --kind knob
vtwin fit "$data/guidellm" "$data"/closed-c2.*.gz --no-cv
taken 1
told 'note .*benchmarks:concurrent-1: only first and last tokens are known'

# What was named and is of no use.
printf '{"prompt_tokens":8,"output_tokens":2,"ttft_ms":5,"itl_ms":[4]}\n' >undated.jsonl
printf 'a, b\n' >table.csv
mkdir nothing
bad 'profile_export_aiperf.json: a summary of AIPerf; what single requests took is in profile_export.jsonl' \
    fit "$data/aiperf/profile_export_aiperf.json"
bad 'a summary of inference-perf' fit "$data/inference-perf/summary_lifecycle_metrics.json"
bad 'result-chat.json: the result holds summaries only' fit "$data/vllm-bench/result-chat.json"
bad 'azure.csv: it has no measured times' fit "$data/azure.csv"
bad 'table.csv: it has no measured times' fit table.csv
bad 'README.md: no trace, step log, report or spans' fit "$VT_ROOT/README.md"
bad 'a profile, which is what a fit makes' fit "$VT_ROOT/profiles/qwen3-8b-h200.json"
bad 'undated: 1 of 1 requests have no arrival time' fit undated.jsonl
bad 'nothing: no trace, step log, report or spans in it$' fit nothing

# Goldens of conform are recordings of several engines: one line says where they differ,
# those of one engine are fitted.
goldens=$VT_ROOT/conformance/goldens
bad 'captures differ in max_num_seqs: 0.26.0-rust-tap says 8, 0.32.0-python-start 128' fit "$goldens"
mkdir one
cp "$goldens"/0.26.0-rust-http.jsonl.gz "$goldens"/0.26.0-rust-supervised.jsonl.gz one/
vtwin fit one --no-cv
taken 2
