# capacity, tune and fit that are stopped say at once, in one line, what they found so far,
# die of the signal and leave nothing behind.
cat >long.yaml <<'Y'
requests: 30000
arrival: {process: poisson, rate: 8}
prompt: {dist: uniform, min: 32, max: 512}
output: {dist: uniform, min: 16, max: 256}
Y
cat >short.yaml <<'Y'
requests: 400
arrival: {process: poisson, rate: 10}
prompt: {dist: uniform, min: 32, max: 128}
output: {dist: uniform, min: 16, max: 48}
Y

# at_work PID: it, or a process of its own, has computed for a tenth of a second.
at_work() {
    local ticks
    for _ in $(seq 100); do
        ticks=$(for p in "$1" $(pgrep -P "$1"); do
            cut -d ' ' -f 14 "/proc/$p/stat" 2>/dev/null || echo 0
        done | sort -n | tail -n 1)
        [ "$ticks" -lt 10 ] || return 0
        kill -0 "$1" 2>/dev/null || fail "ended by itself: $(cat err)"
        sleep 0.02
    done
}

said=only # the line; more: also what a server of its own says

# stop PATTERN ARGS: its line matches. A shell lets what it starts in the background
# ignore SIGINT, hence env.
stop() {
    local pattern=$1 pid began took before after
    shift
    before=$(find . ! -name out ! -name err | LC_ALL=C sort)
    env --default-signal=INT "$VTWIN" "$@" >out 2>err &
    pid=$!
    at_work $pid
    began=$(date +%s%N)
    kill -INT $pid
    status=0
    wait $pid || status=$?
    took=$((($(date +%s%N) - began) / 1000000))
    after=$(find . ! -name out ! -name err | LC_ALL=C sort)
    [ "$status" -eq 130 ] || fail "exit $status from: $* ($(cat err))"
    [ $said = more ] || [ "$(wc -l <err)" -eq 1 ] ||
        fail "not one line from: $*: $(cat err)"
    tail -n 1 err | grep -Eq -- "$pattern" ||
        fail "'$(cat err)' does not match '$pattern' for: $*"
    [ ! -s out ] || fail "a result although stopped: $*"
    [ "$before" = "$after" ] || fail "files left by: $*"
    # Well below a second on an idle machine.
    [ "$took" -lt 4000 ] || fail "took $took ms to stop: $*"
    [ -z "$(pgrep -P $pid)" ] || fail "processes left by: $*"
}

rate='(before a rate was tried|after [0-9]+ trials: (so far the limits are kept at|no rate so far))'
for jobs in 1 2; do
    stop "^vtwin: stopped $rate" capacity --workload long.yaml --jobs $jobs --csv table.csv
    stop '^vtwin: stopped (before a config|after [0-9]+ of [0-9]+ config).*' \
        tune --workload long.yaml --jobs $jobs --out tuned
done
stop "^vtwin: stopped $rate" capacity --workload long.yaml --rates 1,2,3
stop '^vtwin: stopped ' tune --workload long.yaml --search smart --objective capacity
stop '^vtwin: stopped after [0-9]+ of [0-9]+ trials$' \
    tune --plan tuning-plan.yaml --jobs 2 --out planned
stop '^vtwin: stopped(: fitted to 3 captures| before the fit was made: [0-9]+ cap).*no profile' \
    fit "$VT_ROOT/tests/sim/data" --hf-config qwen3-8b --gpu H200 -o profile.json

# One that measures a server mostly waits: it is given a second.
stop_later() {
    at_work() {
        sleep 1
    }
    stop "$@"
}

# A live server is left alone, too.
model=(--latency "linear:base=5000,prefill_token=20")
serving "${model[@]}" --max-num-seqs 8
stop_later "^vtwin: stopped $rate" capacity --workload short.yaml --seeds 1 --target "$url"
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
said=more
stop_later '^vtwin: stopped (before a config|after [0-9]+ of [0-9]+ config)' \
    tune --workload short.yaml --target "http://127.0.0.1:$port" --rates 8,24 \
    --max-num-seqs 2,8 --max-num-batched-tokens 2048 --slo-ttft-p99 500 --out tuned \
    --restart-cmd "exec '$VTWIN' serve --port $port ${model[*]} --max-num-seqs {max_num_seqs} --max-num-batched-tokens {max_num_batched_tokens}" \
    --ready-timeout 30
if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    fail "the last server still runs"
fi
