# Ends of requests only, as many reports have them: no steps are invented, but loads
# matched by simulation. One load alone can't tell, and says so.
server() { # REQUESTS EVERY_MS: constant latencies
    awk -v n="$1" -v every="$2" 'BEGIN {
        print "{\"meta\":{\"max_num_seqs\":64}}"
        for (i = 0; i < n; i++) {
            p = 100 + i * 37 % 11 * 80
            o = 10 + i * 7 % 20
            printf "{\"id\":\"%d-%d\",\"arrival_ms\":%d,", every, i, i * every
            printf "\"prompt_tokens\":%d,\"output_tokens\":%d,", p, o
            printf "\"ttft_ms\":%.3f,\"itl_summary\":{\"mean_ms\":9,\"count\":%d}}\n", 30 + 0.05 * p, o - 1
        }
    }'
}
mkdir ends
server 20 400 >ends/slow.trace.jsonl
server 30 90 >ends/some.trace.jsonl
server 30 30 >ends/busy.trace.jsonl
good fit ends -o ends.json
grep -q '^captures  3, 80 requests; .* found by simulation' out
grep -Eq '^model +[a-z]+$' out
grep -q '^leave one out' out
# All that the profile stands on, and nothing that was not measured.
grep -q '{"name": "slow", "requests": 20, "seconds": 7\.[0-9]}' ends.json || fail "$(cat ends.json)"
grep -Eq '"out_of_sample": \{"e2e": .*"ttft_p99": .*"itl": .*"throughput": ' ends.json
! grep -q itl_p99 ends.json || fail "$(cat ends.json)"
grep -q '"max_num_seqs": 64' ends.json
good inspect validate ends.json
grep -q 'from 3 captures, 80 requests' out || fail "$(cat out)"
good simulate --profile ends.json --trace ends/busy.trace.jsonl --compare
awk '$1 == "E2E" && $2 == "mean" { e = $NF + 0; if (e < -5 || e > 5) exit 1 }' out || fail "$(cat out)"
# What it states of its engine would not have let them finish.
mkdir tight
cp ends/some.trace.jsonl tight/
sed '1s/64/64,"num_gpu_blocks":30/' ends/slow.trace.jsonl >tight/tight.trace.jsonl
vtwin fit tight -o tight.json
[ "$status" -eq 1 ] && [ ! -e tight.json ] || fail "exit $status: $(cat out err)"
grep -q '^vtwin: tight: simulated with the limits .* of 20 requests never finish, and they did' err || fail "$(cat err)"
rm ends.json
vtwin fit ends/busy.trace.jsonl -o ends.json
[ "$status" -eq 1 ] && [ ! -e ends.json ] || fail "exit $status: $(cat out err)"
grep -q '^vtwin: one load cannot be checked against another.*nothing is written' err || fail "$(cat err)"
good fit ends/busy.trace.jsonl -o ends.json --force
grep -q '"forced": "one load cannot' ends.json || fail "$(cat ends.json)"
