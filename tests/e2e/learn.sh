# shellcheck shell=bash disable=SC2154
# A profile out of a running server: the twin's own, over HTTP, in a few seconds.
serving --latency linear:base=4000,decode=200,prefill_token=20 --max-num-seqs 6 \
    --num-gpu-blocks 600

# A busy machine makes any time longer: how close it comes is judged in virtual time
# (learn/test_learn), here only that it gets there. Measured anew where that was in the way.
for try in 1 2 3 4 5; do
    vtwin learn --base-url "$url" -o mine.json --seconds 5 --max-concurrency 8 --kind linear \
        --tolerance 100 --json
    [ "$status" -eq 0 ] && break
    [ $try -lt 5 ] || fail "exit $status: $(cat err)"
done
cp out learned.json
python3 - <<'P' || fail "what it says"
import json
r = json.load(open("learned.json"))
p = json.load(open("mine.json"))
s, e = r["server"], r["unseen_error_percent"]
assert s["num_gpu_blocks"] == 600 and s["max_num_seqs"] == 6, s
assert s["max_num_batched_tokens"] >= 0 and s["vllm_version"] == "0.32.0", s
assert max(e["e2e"], e["itl"], e["ttft"]) <= 100, e
assert p["engine"]["num_gpu_blocks"] == 600 and p["engine"]["max_num_seqs"] == 6, p["engine"]
assert p["provenance"]["learned"]["unseen_error_percent"] == e
assert p["provenance"]["made_by"].startswith("vtwin learn")
assert r["clock"] == p["clock"] == "client" and p["frontend"]["kind"] == "none", p["clock"]
assert 0 <= p["frontend"]["client_us"] == r["client_pause_us"], p["frontend"]
assert [q for q in r["loads"] if q["part"] == "unseen"] and len(r["loads"]) > 8
P
grep -q 'Loads that it has not seen' mine-report.html || fail "the page"
ls mine-traces/unseen/unseen-poisson.trace.jsonl.gz mine-traces/checks/crowd.trace.jsonl.gz >/dev/null
good simulate --profile mine.json --workload "$VT_ROOT/profiles/default-workload.yaml"
grep -q '^clock .*client' out || fail "simulate does not say whose clock: $(cat out)"
bad 'by the client.s clock' simulate --profile mine.json --clock engine \
    --workload "$VT_ROOT/profiles/default-workload.yaml"
good inspect stats mine-traces/poisson.trace.jsonl.gz
# The traces are captures like others: a fit of them is by the same clock.
mkdir some
cp mine-traces/closed-*.gz mine-traces/poisson.trace.jsonl.gz some
good fit some -o again.json --no-cv --force --quiet
python3 - <<'P' || fail "what fit makes of learn's traces"
import json
p = json.load(open("again.json"))
assert p["clock"] == "client" and p["frontend"]["client_us"] >= 0, p["clock"]
assert p["engine"]["num_gpu_blocks"] == 600 and p["engine"]["max_num_seqs"] == 6, p["engine"]
P

# refused CODE PATTERN ARGS: no profile, and the last line says why.
refused() {
    local code=$1 pattern=$2 try
    shift 2
    for try in 1 2 3 4 5; do # a busy machine changes its speed
        rm -rf no*
        vtwin learn -o no.json --quiet --seconds 4 --max-concurrency 4 --kind linear "$@"
        grep -q "the server's speed changed" err || break
    done
    [ "$status" -eq "$code" ] || fail "exit $status, not $code: $(cat err)"
    grep -Eq -- "$pattern" err || fail "'$(cat err)' does not match '$pattern'"
    [ ! -e no.json ] || fail "a profile although refused"
}

# What it predicts is never as good as this.
refused 1 'no profile is written: what it predicts of loads' --base-url "$url" --tolerance 0.1 \
    --seconds 8
grep -q 'Not to be trusted' no-report.html || fail "the page does not say so"
refused 1 'too short: at .* it takes [0-9]+ s' --base-url "$url" --seconds 2
# Somebody else is there.
"$VTWIN" bench serve --base-url "$url" --num-prompts 20 --random-input-len 8 \
    --random-output-len 30 --max-concurrency 1 --disable-tqdm >/dev/null 2>&1 &
servers+=($!)
refused 1 'the server has other requests' --base-url "$url"

serving --latency null:
refused 1 'too fast for a client' --base-url "$url"
serving --latency linear:base=5000 --failure-injection-rate 0.3
refused 3 'requests failed|status 4|status 5' --base-url "$url"
serving --latency linear:base=5000 --api-key secret
refused 3 'status 401' --base-url "$url"
refused 1 'short: cut off after 0.05 s' --base-url "$url" --api-key secret --seconds 0.2
python3 -m http.server --bind 127.0.0.1 0 >other.log 2>&1 &
servers+=($!)
for _ in $(seq 100); do
    other=$(grep -oE 'http://[0-9.:]+' other.log) && break
    sleep 0.1
done
refused 3 '/v1/models: status 404' --base-url "$other"

bad 'usage: vtwin learn' learn -o x.json
bad 'give one of them' learn --base-url http://127.0.0.1:1 -o x.json --minutes 1 --seconds 1
bad 'is not KEY=VALUE' learn --base-url http://127.0.0.1:1 -o x.json --header nonsense
