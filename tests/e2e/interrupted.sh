# A run that is ended early leaves no summary that looks finished.
cat >long.yaml <<'END'
duration_s: 20000
arrival: {process: poisson, rate: 8}
prompt: 512
output: 128
END

# Starts a long run and waits until it writes.
start() {
    "$VTWIN" simulate --workload long.yaml --out "$1" >out 2>err &
    pid=$!
    for _ in $(seq 1000); do
        [ -z "$(find "$1" -type f -size +0 2>/dev/null)" ] || return 0
        kill -0 $pid 2>/dev/null || fail "ended before it wrote: $(cat err)"
        sleep 0.01
    done
    fail "wrote nothing in ten seconds"
}

start killed
kill -9 $pid
wait $pid 2>/dev/null || true
[ ! -e killed/summary.json ] || fail "a summary after kill -9"
[ ! -e killed/requests.jsonl ] || fail "requests after kill -9"

start stopped
kill -TERM $pid
wait $pid 2>/dev/null && fail "success although stopped"
[ ! -e stopped ] || fail "left after SIGTERM: $(ls -A stopped)"

# The directory's parents go too, but not those that were there.
mkdir kept
start kept/new/deep
kill -HUP $pid
wait $pid 2>/dev/null && fail "success although stopped"
[ -d kept ] && [ -z "$(ls -A kept)" ] || fail "left in kept: $(find kept)"

# A full disk or a closed stdout is exit 3.
if [ -w /dev/full ]; then
    status=0
    "$VTWIN" simulate --json >/dev/full 2>err || status=$?
    [ $status -eq 3 ] || fail "exit $status on a full stdout"
    grep -q 'stdout: ' err
fi
