# Whose scheduler it is: the flag's, else the trace's, else the profile's, else the newest.
newest=0.32
cat >one.yaml <<'Y'
requests: 1
arrival: {process: constant, rate: 1}
prompt: 1000
output: 2
Y
says() { # VERSION ARGS: of a simulation, in its table and its JSON
    local want=$1
    shift
    good simulate --quiet "$@"
    grep -q "^scheduler    vLLM $want\$" out || fail "simulate $*: not $want: $(cat out)"
    good simulate --quiet --json "$@"
    grep -q "\"vllm_version\": \"$want\"" out || fail "simulate $* --json: not $want"
}
says 0.26 # the default profile's
says $newest --latency linear:base=1000
says 0.29 --vllm-version 0.29
says 0.31 --vllm-version v0.31.2 --latency linear:base=1000

# ---- a trace ----
line='{"id":"a","arrival_ms":0,"prompt_tokens":1000,"output_tokens":2,"ttft_ms":9,"itl_ms":[1]}'
trace() { printf '{"meta":{"vllm_version":"%s"}}\n%s\n' "$1" "$line" >trace.jsonl; }
trace 0.30.1
says 0.30 --trace trace.jsonl
says 0.30 --trace trace.jsonl --latency linear:base=1000
says 0.27 --trace trace.jsonl --vllm-version 0.27.0
trace 0.11.0 # what is not known is as its nearest
says 0.26 --trace trace.jsonl --latency linear:base=1000
trace 1.2.0
says $newest --trace trace.jsonl
trace nightly
says 0.26 --trace trace.jsonl

# ---- a report replays under the same rules ----
good simulate --workload one.yaml --vllm-version 0.28 --quiet --out report
grep -q '"vllm_version":"0.28.0"' report/requests.jsonl || fail "$(head -1 report/requests.jsonl)"
says 0.28 --trace report/requests.jsonl

# ---- it decides: a prompt alone is not cut any more since 0.31 ----
steps() {
    good simulate --workload one.yaml --quiet --long-prefill-token-threshold 100 "$@"
    sed -n 's/^steps  *//p' out
}
[ "$(steps --vllm-version 0.30)" -gt "$(steps --vllm-version 0.31)" ] || fail "the same steps"

# ---- capacity and tune ----
once=(--rates 1 --seeds 1 --once --jobs 1 --quiet)
trace 0.30.1
good capacity --workload one.yaml "${once[@]}" --vllm-version 0.29
grep -q '^scheduler of vLLM 0.29$' out || fail "$(cat out)"
good capacity --trace report/requests.jsonl "${once[@]}" --json
grep -q '"vllm_version": "0.28"' out || fail "$(cat out)"
few=(--max-num-seqs 16 --max-num-batched-tokens 2048)
good tune --workload report/requests.jsonl "${few[@]}" "${once[@]}" --json
grep -q '"vllm_version": "0.28"' out || fail "$(cat out)"
good tune --workload one.yaml "${few[@]}" "${once[@]}" --vllm-version $newest
grep -q 'simulations, scheduler of vLLM 0.32$' out || fail "$(cat out)"
bad 'a plan follows the release of its profile' tune --plan tuning-plan.yaml --vllm-version 0.26

# ---- serve and play ----
first_line() { # COMMAND ARGS: what it says when it has started
    rm -f said
    timeout --preserve-status 20 "$VTWIN" "$@" 2>said &
    for _ in $(seq 400); do
        [ -e said ] && [ "$(wc -l <said)" -gt 0 ] && break
        sleep 0.05
    done
    kill $!
    wait $! || true
    head -1 said
}
first_line serve --port 0 | grep -q "as vLLM 0.26.0, timed by" || fail "serve: $(cat said)"
first_line serve --port 0 --latency null: | grep -q "as vLLM 0.32.0, timed" || fail "serve: $(cat said)"
play=(play --latency null: --handshake-address ipc://nobody)
first_line "${play[@]}" | grep -q "scheduler of vLLM 0.32, until requests tell of another;" ||
    fail "play: $(cat said)"
first_line "${play[@]}" --vllm-version 0.25.1 | grep -q "scheduler of vLLM 0.26;" ||
    fail "play: $(cat said)"
first_line "${play[@]}" --vllm-line 0.28 | grep -q "scheduler of vLLM 0.28;" ||
    fail "play: $(cat said)"

# ---- what there is not ----
for command in simulate capacity tune serve play validate; do
    for version in 0.24 0.33 1.0 x 0 ''; do
        bad "--vllm-version: vLLM '$version': known are 0.26 to 0.32" "$command" \
            --vllm-version "$version"
    done
done
