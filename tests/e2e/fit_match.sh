# Ends of requests only, as many reports have them: no steps are invented, but loads
# matched by simulation. One load alone can't tell, and says so.
server() { # REQUESTS EVERY_MS [SEATS]: constant latencies; a limit that nobody states
    awk -v n="$1" -v every="$2" -v seats="${3:-0}" 'BEGIN {
        print (seats > 0 ? "{\"meta\":{}}" : "{\"meta\":{\"max_num_seqs\":64}}")
        for (i = 0; i < n; i++) {
            p = 100 + i * 37 % 11 * 80
            o = 10 + i * 7 % 20
            first = seats > 0 ? 2 + 0.005 * p : 30 + 0.05 * p
            wait = seat = 0
            for (k = 1; k < seats; k++)
                if (free[k] < free[seat])
                    seat = k
            if (seats > 0 && free[seat] > i * every)
                wait = free[seat] - i * every
            free[seat] = i * every + wait + first + 9 * (o - 1)
            printf "{\"id\":\"%d-%d\",\"arrival_ms\":%d,", every, i, i * every
            printf "\"prompt_tokens\":%d,\"output_tokens\":%d,", p, o
            printf "\"ttft_ms\":%.3f,\"itl_summary\":{\"mean_ms\":9,\"count\":%d}}\n", wait + first, o - 1
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
# Gaps between single tokens were not measured.
awk '$1 == "busy" || /^median size/ { n++; if ($(NF - 1) != "-") exit 1 } END { exit n != 2 }' out || fail "$(cat out)"
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

# How many requests run at once is stated nowhere: what waits shows it, and the profile
# states it.
mkdir seats
server 20 400 16 >seats/slow.trace.jsonl
server 60 0 16 >seats/rush.trace.jsonl
good fit seats --no-cv -o seats.json
grep -q '^limit     16 requests run at once, by what waited$' out || fail "$(cat out)"
grep -q '"max_num_seqs": 16' seats.json || fail "$(cat seats.json)"
good simulate --profile seats.json --trace seats/rush.trace.jsonl --compare
awk '$1 == "TTFT" && $2 == "mean" { e = $NF + 0; if (e < -10 || e > 10) exit 1 }' out || fail "$(cat out)"

# The KV cache's size is stated nowhere either: requests that lose their places in it show
# it, simulation finds it, and the profile states it.
mkdir pool
blocks=560
i=0
for load in '6 1' '24 8' '70 40'; do
    printf 'requests: %d\narrival: {process: closed, concurrency: %d}\n' ${load% *} ${load#* } >load.yaml
    cat >>load.yaml <<'END'
prompt: {dist: lognormal, median: 300, sigma: 0.8, min: 8, max: 3000}
output: {dist: uniform, min: 10, max: 40}
END
    good simulate --workload load.yaml --latency linear:queue=900,base=4000,prefill_token=30,decode=25,context_token=0.05 \
        --num-gpu-blocks $blocks --out made
    python3 - $i <<'END'
import json, sys
rows = [json.loads(line) for line in open("made/requests.jsonl")]
with open(f"pool/{sys.argv[1]}.trace.jsonl", "w") as f:
    for r in rows:
        if "meta" in r:
            r["meta"].pop("num_gpu_blocks", None)
        else:
            gaps = r.pop("itl_ms", [])
            r.pop("itl_ctx", None)
            if gaps:
                r["itl_summary"] = {"mean_ms": sum(gaps) / len(gaps), "count": len(gaps)}
        print(json.dumps(r), file=f)
END
    rm -r made
    i=$((i + 1))
done
good fit pool --no-cv -o pool.json
grep -Eq '^limit     [0-9]+ blocks of 16 tokens, by what waited' out || fail "$(cat out)"
awk -F '[:,]' '/"num_gpu_blocks"/ { n++; if ($2 < 520 || $2 > 600) exit 1 } END { exit n != 1 }' pool.json || fail "$(cat pool.json)"
good simulate --profile pool.json --trace pool/2.trace.jsonl --compare
awk '$1 == "TTFT" && $2 == "mean" { e = $NF + 0; if (e < -10 || e > 10) exit 1 }' out || fail "$(cat out)"
