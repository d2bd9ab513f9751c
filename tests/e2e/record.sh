# vtwin record between a frontend of our own (bench/play_peer.c) and vtwin play.
fe=ipc://$PWD/fe en=ipc://$PWD/en
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT

# wait_for SECONDS CONDITION...
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -le $end ] || fail "waited in vain for: $* ($(cat record.err play.err 2>/dev/null))"
        sleep 0.02
    done
}

# start REQUESTS CONCURRENCY OUTPUT RECORD-FLAGS...: all three; $peer, $record, $play. The
# recorder's files take $max_kb, as if the disk were full then.
max_kb=
start() {
    local load=("$1" "$2" 100 "$3")
    shift 3
    rm -f fe en
    "$VT_PEER" "$fe" "${load[@]}" >peer.out 2>peer.err &
    peer=$!
    (
        [ -z "$max_kb" ] || ulimit -f "$max_kb"
        trap '' XFSZ
        exec "$VTWIN" record --frontend-handshake "$fe" --engine-handshake "$en" "$@" 2>record.err
    ) &
    record=$!
    "$VTWIN" play --handshake-address "$en" --latency linear:base=500 --vllm-line 0.26 2>play.err &
    play=$!
}

# finish: the peer is done; play and record end well when told to.
finish() {
    wait $peer || fail "the frontend: $(cat peer.err record.err play.err)"
    kill -TERM $record
    wait $record || fail "record ends with $?: $(cat record.err)"
    stop_play
}

stop_play() {
    kill -9 $play
    wait $play 2>/dev/null || true
}

rows() { # FILE: requests in a trace, as far as it can be read
    { zcat -f "$1" 2>/dev/null || true; } | grep -c '^{"id":.*}$' || true
}

has_rows() { # FILE N
    [ "$(rows "$1")" -ge "$2" ]
}

# ---- a recording, and what reads it ----
start 60 8 20 --trace-out cap.trace.jsonl --wire-out wire.jsonl.gz --step-stats-out stats.jsonl \
    --record-tokens --gpu H200 --model Qwen/Qwen3-8B --vllm-version v0.26.0
finish
grep -q '^vtwin record: waiting for engines on ipc://.*/en, for the frontend at ipc://.*/fe$' record.err
grep -q '^vtwin record: engine 0 (vLLM 0.26.*) is connected to the frontend; 1 client$' record.err
grep -Eq '^vtwin record: [0-9]+ messages, 60 requests written \(0 aborted\)$' record.err
[ "$(rows cap.trace.jsonl)" -eq 60 ] || fail "not 60 requests: $(rows cap.trace.jsonl)"
head -n 1 cap.trace.jsonl | grep -q '^{"meta":{"source":"tap","model":"Qwen/Qwen3-8B","gpu":"H200",.*"config_hash":"[0-9a-f]\{64\}"'
good inspect validate cap.trace.jsonl
grep -q 'a trace of 60 requests with 1140 measured gaps' out
good inspect stats cap.trace.jsonl
good simulate --trace cap.trace.jsonl --quiet
good fit cap.trace.jsonl --hf-config qwen3-8b --gpu H200 -o fitted.json --quiet --no-cv --force
steps() { sed -nE 's/^captures  1, ([0-9]+) steps.*/\1/p' out; }
rebuilt=$(steps)
# Statistics are a line for each step, also where steps lie too close to be told apart.
good fit cap.trace.jsonl stats.jsonl --hf-config qwen3-8b --gpu H200 -o fitted.json --quiet --no-cv --force
[ "$(steps)" -ge "$rebuilt" ] && [ "$(steps)" -le "$(wc -l <stats.jsonl)" ] ||
    fail "$(steps) steps with statistics, $rebuilt without"
bad 'stats.jsonl: scheduler statistics need the trace of the same recording' fit stats.jsonl
good inspect calibrate cap.trace.jsonl --latency trace:file=cap.trace.jsonl --tolerance 1
zcat wire.jsonl.gz | awk 'NR == 1' | grep '"kind":"HELLO"' >/dev/null
[ "$(zcat wire.jsonl.gz | grep -c '"kind":"ADD"')" -eq 60 ] || fail "not 60 ADDs in the log"
grep -q '^{"ts_ms":[0-9.]*,.*"scheduler":{"num_running_reqs":' stats.jsonl

# ---- killed when all requests have finished: none is lost ----
for file in plain.jsonl packed.jsonl.gz; do
    start 40 8 10 --trace-out $file
    wait $peer || fail "the frontend: $(cat peer.err)"
    wait_for 10 has_rows $file 40
    kill -9 $record
    wait $record 2>/dev/null || true
    stop_play
    vtwin inspect validate $file
    [ "$status" -eq 0 ] || fail "$file after kill -9: $(cat err)"
    grep -q 'a trace of 40 requests' out
done
grep -q "^warning: packed.jsonl.gz: the gzip stream has no end" err
bad 'packed.jsonl.gz: the gzip stream has no end' inspect stats packed.jsonl.gz --whole

# ---- killed at any other point: what was there stays, and can be read ----
for delay in 0 0.01 0.03 0.07 0.12; do
    for file in killed.jsonl killed-packed.jsonl.gz; do
        rm -f $file
        start 100000 8 3 --trace-out $file
        wait_for 10 has_rows $file 1
        sleep $delay
        before=$(rows $file)
        kill -9 $record
        wait $record 2>/dev/null || true
        kill -9 $peer
        wait $peer 2>/dev/null || true
        stop_play
        has_rows $file "$before" || fail "$file had $before requests, now $(rows $file)"
        vtwin inspect validate $file
        [ "$status" -eq 0 ] || fail "$file killed after $delay s: $(cat err)"
    done
done

# ---- durable: what a client has seen end is there, whenever the recorder is killed ----
for file in durable.jsonl durable.jsonl.gz; do
    "$VT_KILLS" "$VTWIN" $file 5 $RANDOM --durable >kills || fail "$file: $(cat kills)"
    grep -q '^{"kills":5,"ended":[1-9][0-9]*,"missing":0,' kills || fail "$(cat kills)"
    vtwin inspect validate $file
    [ "$status" -eq 0 ] || fail "$file: $(cat err)"
done
start 60 8 20 --trace-out ended.jsonl --durable
finish
[ "$(rows ended.jsonl)" -eq 60 ] || fail "not 60 requests: $(rows ended.jsonl)"

# ---- stopped for a while: everything goes on ----
echo old >paused.jsonl
start 200 8 10 --trace-out paused.jsonl --overwrite
wait_for 10 has_rows paused.jsonl 20
for who in $record $peer $play; do
    kill -STOP $who
    sleep 0.2
    kill -CONT $who
done
finish
[ "$(rows paused.jsonl)" -eq 200 ] || fail "not 200 requests: $(rows paused.jsonl)"

# ---- killed and started again: one trace ----
start 20 4 5 --trace-out again.jsonl --step-stats-out again.stats --append --durable
wait $peer || fail "the frontend: $(cat peer.err)"
kill -9 $record
wait $record 2>/dev/null || true
stop_play
printf '{"id":"cut","arri' >>again.jsonl
start 30 4 5 --trace-out again.jsonl --step-stats-out again.stats --append
finish
grep -q '^vtwin record: again.jsonl goes on behind 20 requests$' record.err
good inspect validate again.jsonl
grep -q 'a trace of 50 requests' out
good simulate --trace again.jsonl --quiet
awk -F'"ts_ms":|,' '$2 + 0 < last { exit 1 } { last = $2 + 0 }' again.stats || fail "statistics go back"
start 1 1 1 --trace-out again.jsonl --append --max-num-seqs 7
status=0
wait $record || status=$?
[ $status -eq 2 ] || fail "exit $status although the engine differs"
grep -q '^vtwin: again.jsonl: it was recorded with max_num_seqs [0-9]*, not 7; nothing was recorded$' record.err
kill -9 $peer
wait $peer 2>/dev/null || true
stop_play
good inspect validate again.jsonl

# ---- an engine of another line: exit 2, nothing written ----
start 1 1 1 --trace-out none.jsonl --wire-out none.wire --vllm-version 0.27.1
status=0
wait $record || status=$?
[ $status -eq 2 ] || fail "exit $status although the version differs"
grep -q '^vtwin: engine 0 runs vLLM 0.26.*, not 0.27.1 as --vllm-version says; nothing was recorded$' record.err
[ ! -e none.jsonl ] && [ ! -e none.wire ] || fail "files although refused"
kill -9 $peer
wait $peer 2>/dev/null || true
stop_play

# ---- a full disk ends the recording, not the forwarding: exit 3 at the end ----
if [ -w /dev/full ]; then
    start 20 4 5 --trace-out /dev/full
    wait $peer || fail "the frontend: $(cat peer.err)"
    wait_for 5 grep -q 'No space left on device; forwarding goes on' record.err
    kill -TERM $record
    status=0
    wait $record || status=$?
    [ $status -eq 3 ] || fail "exit $status on a full disk"
    stop_play
fi

# ---- a disk that fills up in the middle of a line: the lines before are whole ----
max_kb=24
for file in full.jsonl full.jsonl.gz; do
    start 300 8 20 --trace-out $file --record-tokens
    wait $peer || fail "the frontend: $(cat peer.err)"
    wait_for 5 grep -q 'File too large; forwarding goes on, recording has ended' record.err
    kill -TERM $record
    status=0
    wait $record || status=$?
    [ $status -eq 3 ] || fail "exit $status on a full disk"
    stop_play
    vtwin inspect validate $file
    [ "$status" -eq 0 ] || fail "$file after a full disk: $(cat err)"
    n=$(sed -n 's/.*: a trace of \([0-9]*\) requests.*/\1/p' out)
    [ "$n" -gt 10 ] && [ "$n" -lt 300 ] || fail "$file: $(cat out)"
done
[ -z "$(tail -c 1 full.jsonl)" ] || fail "full.jsonl: its last line is cut"
max_kb=

# ---- usage ----
rm -f fe en
touch there.jsonl
bad 'where to\? --trace-out' record
bad 'there.jsonl is there already; --overwrite' record --trace-out there.jsonl
bad 'there.jsonl is there already; .* --append' record --trace-out there.jsonl
bad 'durable needs --trace-out' record --wire-out x --durable
bad 'give one of them' record --trace-out there.jsonl --append --overwrite
echo '{"id":"a"}' >there.jsonl
bad 'there.jsonl: line 1: not a recording' record --trace-out there.jsonl --append
bad 'cannot write: No such file' record --trace-out no/such/dir.jsonl
bad 'must name a host' record --trace-out x --input-address tcp://0.0.0.0:4000
bad 'neither tcp:// nor ipc://' record --trace-out x --output-address udp://1:2
bad 'cannot listen on tcp://127.0.0.1:x' record --trace-out x --engine-handshake tcp://127.0.0.1:x
bad 'would be written twice' record --trace-out x --wire-out x
bad 'one argument too many' record --trace-out x y
bad "tp: '0' is not" record --trace-out x --tp 0
