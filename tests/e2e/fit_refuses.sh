# Captures that another kind of model made, with stalls and one odd run among them: a profile
# that is right, or a refusal that says why, and who uses a refused one is told.
truth=blackbox:alpha=1000,1,0,beta=6000,30,40
load() { # load FILE REQUESTS ARRIVAL
    printf 'requests: %s\narrival: {%s}\nprompt: {dist: lognormal, median: 400, sigma: 0.9, min: 8, max: 6000}\noutput: {dist: uniform, min: 10, max: 60}\n' \
        "$2" "$3" >"$1"
}
load c2.yaml 20 'process: closed, concurrency: 2'
load c16.yaml 60 'process: closed, concurrency: 16'
load c48.yaml 100 'process: closed, concurrency: 48'
load r9.yaml 50 'process: poisson, rate: 9'
load unseen.yaml 80 'process: poisson, rate: 6'
mkdir captures
for name in c2 c16 c48 r9; do
    good simulate --workload $name.yaml --latency $truth --num-gpu-blocks 20000 --out run --quiet
    mv run/requests.jsonl captures/$name.trace.jsonl
    mv run/steps.jsonl captures/$name.steps.jsonl
    rm -r run
done

# later NAME MS... : what comes after each of these times comes a second later, so often.
# slower NAME FACTOR: another machine.
cat >times.py <<'PY'
import json, sys
name, how, *args = sys.argv[1:]
args = [float(a) for a in args]
def at(t):
    return t * args[0] if how == "slower" else t + 1000 * sum(t >= a for a in args)
def trace(r):
    times, t = [], r["arrival_ms"]
    for gap in [0, r["ttft_ms"], *r["itl_ms"]]:
        t += gap
        times.append(at(t))
    gaps = [round(b - a, 3) for a, b in zip(times, times[1:])]
    r.update(arrival_ms=round(times[0], 3), ttft_ms=gaps[0], itl_ms=gaps[1:])
def step(r):
    for key in "sched_ms", "sched_end_ms", "out_ms", "done_ms":
        r[key] = round(at(r[key]), 3)
for kind, change in ("trace", trace), ("steps", step):
    path = f"{name}.{kind}.jsonl"
    rows = [json.loads(line) for line in open(path)]
    for r in rows:
        if "meta" not in r:
            change(r)
    open(path, "w").writelines(json.dumps(r, separators=(",", ":")) + "\n" for r in rows)
PY
refused() { # refused PATTERN ARGS: exit 1, that last line, and nothing written
    local pattern=$1
    shift
    vtwin "$@" -o refused.json
    [ "$status" -eq 1 ] || fail "exit $status from: $* ($(cat out err))"
    tail -n 1 err | grep -Eq -- "$pattern" || fail "'$(cat err)' is not '$pattern'"
    [ ! -e refused.json ] || fail "written all the same: $*"
}

# ---- stalls, an odd run, an odd limit: found, named, and the truth with them ----
python3 times.py captures/c2 later 100 300 500
python3 times.py captures/c16 later 200 900
python3 times.py captures/c48 slower 1.7
sed -i '1s/"num_gpu_blocks":20000/"num_gpu_blocks":3000/' captures/c16.trace.jsonl
good fit captures -o fitted.json --quiet
grep -Eq '^stalls +5 of 5\.[0-9] s in all' out || fail "$(cat out)"
grep -q 'c2: 3 of ' out || fail "$(cat out)"
grep -q '^with stalls cut out' out || fail "$(cat out)"
grep -q '^note      c16: num_gpu_blocks is 3000, the profile states 20000 as the others do$' out || fail "$(cat out)"
grep -Eq '^note      c48: took 1\.[67][0-9]* times as long as the other captures say: left out$' out || fail "$(cat out)"
grep -q '"num_gpu_blocks": 20000' fitted.json
grep -q '"name": "c2", .*"stalls": 3' fitted.json
python3 - <<'PY' || fail "which moments were left out is not what was left out"
import json
captures = json.load(open("fitted.json"))["provenance"]["captures"]
for c in [c for c in captures if "stalls" in c]:
    ends = [end for end, ms in c["stalled_ms"]]
    assert len(ends) == c["stalls"] and sorted(ends) == ends, c
    assert 0 < ends[0] and ends[-1] < 1e3 * c["seconds"] + 1e3, c
    assert abs(sum(ms for end, ms in c["stalled_ms"]) / 1e3 - c["stall_seconds"]) < 0.1, c
PY
grep -q '"name": "c48", .*"left_out": true' fitted.json
grep -q '"out_of_sample": {"e2e": ' fitted.json
# The pool and the limits are the profile's, for whoever uses it.
for run in "profile show fitted.json" "simulate --profile fitted.json --workload unseen.yaml --json"; do
    # shellcheck disable=SC2086
    good $run
    ! grep -q forced out || fail "$(cat out)"
done
cp out mine.json
good inspect validate fitted.json
grep -Eq '^  made by vtwin fit [0-9.]+ from 4 captures, [0-9]+ steps, [0-9.]+ s with 5 stalls$' out || fail "$(cat out)"
grep -q '^  median error of captures left out: E2E ' out || fail "$(cat out)"
good simulate --latency $truth --num-gpu-blocks 20000 --workload unseen.yaml --json
python3 - <<'PY' || fail "the fit is not what made the captures"
import json
a, b = (json.load(open(f)) for f in ("mine.json", "out"))
for key, most in ("e2e_ms", 5), ("itl_ms", 5), ("ttft_ms", 10):
    error = 100 * (a[key]["mean"] / b[key]["mean"] - 1)
    print(key, round(error, 1))
    assert abs(error) < most
PY

# ---- faster than physics ----
refused '^vtwin: .*: decode steps take [0-9.]+ ms, but H200 needs [0-9.]+ ms to read the weights; nothing is written' \
    fit captures --no-cv --quiet --hf-config llama-3.1-70b-instruct --gpu H200
sed -i '1s/{"meta":{/{"meta":{"model":"meta-llama\/Llama-3.1-70B-Instruct","gpu":"H200",/' captures/*.trace.jsonl
refused 'decode steps take' fit captures --no-cv --quiet
sed -i '1s/"gpu":"H200",/"gpu":"H999",/' captures/*.trace.jsonl # not known, not judged
good fit captures --no-cv --quiet -o other.json

# ---- an engine that could not have served its requests ----
mkdir tight
sed '1s/"num_gpu_blocks":20000/"num_gpu_blocks":60/' captures/r9.trace.jsonl >tight/r9.trace.jsonl
cp captures/r9.steps.jsonl tight/
refused '^vtwin: r9: simulated .* [0-9]+ of 50 requests never finish, and they did: .*; nothing is written' \
    fit tight --quiet
good fit tight --quiet -o tight.json --force
grep -q '"forced": "r9: simulated' tight.json || fail "$(cat tight.json)"

# ---- limits on which nobody agrees ----
sed -i '1s/"max_num_seqs":1024/"max_num_seqs":128/' captures/c2.trace.jsonl captures/c48.trace.jsonl
bad 'captures differ in max_num_seqs: .*; --limits-of NAME' fit captures -o other.json --quiet
good fit captures -o other.json --no-cv --quiet --limits-of c2
grep -q '"max_num_seqs": 128' other.json

# ---- garbage ----
python3 times.py captures/c2 slower 20
python3 times.py captures/r9 slower 0.2
refused '^vtwin: the fit cross-validates badly: in the median .* is off by .*; nothing is written' \
    fit captures --quiet --limits-of c2
good fit captures --quiet --limits-of c2 -o forced.json --force
tail -n 1 out | grep -q '^profile: forced.json, by force: the fit ' || fail "$(cat out)"
good inspect validate forced.json
grep -q '^  written by force: the fit ' out || fail "$(cat out)"
told="^vtwin: warning: profile 'forced' was written by force: the fit "
for run in "simulate --workload unseen.yaml" "capacity --workload unseen.yaml --rates 5 --seeds 1 --once" \
    "tune --workload unseen.yaml --max-num-seqs 16 --max-num-batched-tokens 8192"; do
    # shellcheck disable=SC2086
    vtwin $run --profile forced.json --json
    [ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
    grep -q "$told" err || fail "$run: $(cat err)"
    grep -q '"profile": "forced (by force)"' out || fail "$run: $(cat out)"
done
vtwin validate --data-dir "$VT_ROOT/tests/cases/validate/truth" --output-dir results \
    --adapters vtwin-step --profile forced.json
grep -q "$told" err || fail "validate: $(cat err)"
