# A run that goes beyond what its profile was fitted on is told, whoever drives it.
good profile show qwen3-8b-h200 --json
sed 's/"seen_running": *[0-9]*/"seen_running": 2/' out >narrow.json
grep -q '"seen_running": 2' narrow.json || fail "the profile says it otherwise"
cat >crowd.yaml <<'Y'
requests: 24
arrival: {process: constant, rate: 1000}
prompt: 40
output: 20
Y
told='^vtwin: warning: running requests reached [0-9]*, but the profile was fitted up to 2$'

vtwin simulate --workload crowd.yaml --profile narrow.json --json --out report
grep -q "$told" err || fail "simulate: $(cat err)"
grep -Eq '"outside": \{"running": \{"reached": [0-9]+, "fitted_up_to": 2\}\}' out || fail "$(cat out)"
cmp out report/summary.json
good simulate --workload crowd.yaml --profile narrow.json --quiet
good simulate --workload crowd.yaml --json
! grep -q outside out || fail "nothing is outside: $(cat out)"

vtwin capacity --workload crowd.yaml --profile narrow.json --rates 500 --seeds 1 --once --json
grep -q "$told" err || fail "capacity: $(cat err)"
grep -q '"outside": {"running": {' out || fail "capacity: $(cat out)"
good capacity --workload crowd.yaml --rates 20 --seeds 1 --once --json
! grep -q outside out || fail "capacity: $(cat out)"

vtwin tune --workload crowd.yaml --profile narrow.json --max-num-seqs 16 \
    --max-num-batched-tokens 8192 --json
grep -q "$told" err || fail "tune: $(cat err)"
grep -q '"outside": {"running": {' out || fail "tune: $(cat out)"

cat >plan.yaml <<'Y'
name: a crowd
profile: narrow.json
hf_config: qwen3-8b
gpu: H200
workload: crowd.yaml
seeds: 1
requests: 24
rates: [500]
slo: {ttft_p99_ms: 60000}
rows:
  - {name: wide, phase: 0, gpu_memory_utilization: 0.9, max_num_batched_tokens: 8192, max_num_seqs: 16}
Y
vtwin tune --plan plan.yaml --json
grep -q "^vtwin: warning: row 'wide': running requests reached 16, but the profile was fitted up to 2$" err ||
    fail "tune --plan: $(cat err)"
grep -q '"outside": {"running": {"reached": 16, "fitted_up_to": 2}}' out || fail "tune --plan: $(cat out)"
good tune --plan plan.yaml --quiet

vtwin validate --data-dir "$VT_ROOT/tests/cases/validate/truth" --output-dir results \
    --adapters vtwin-step --profile narrow.json
grep -q 'warning: vtwin-step on .*: running requests reached .* fitted up to 2$' err ||
    fail "validate: $(cat err)"

# ---- serve: at its end ----
cat >crowd.py <<'PY'
import json, re, subprocess, sys, threading, urllib.request
p = subprocess.Popen([*sys.argv[1:], "--port", "0"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
url = re.search(r"(http://\S+) answers", p.stderr.readline()).group(1)
def ask():
    body = json.dumps({"prompt": "a b c", "max_tokens": 100, "ignore_eos": True}).encode()
    r = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(r).read()
threads = [threading.Thread(target=ask) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
p.terminate()
out, err = p.communicate()
print(out)
print(err, file=sys.stderr)
PY
python3 crowd.py "$VTWIN" serve --profile narrow.json --json >out 2>err
grep -q "$told" err || fail "serve: $(cat err)"
grep -q '"outside":{"running":{"reached":[0-9]*,"fitted_up_to":2}}}' out || fail "serve: $(cat out)"
