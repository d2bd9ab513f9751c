# Simulators are judged by measurements: files, tables, and what is refused.
truth=$VT_ROOT/tests/cases/validate/truth
legacy=$VT_ROOT/tests/cases/validate/legacy
make=$VT_ROOT/tests/make_ground_truth

# ---- a run leaves two files and tables ----
good validate --data-dir "$truth" --output-dir results --jobs 2 --clock client
grep -q '^Found 2 experiments$' out || fail "$(cat out)"
grep -q '^Parsed 2 experiments successfully$' out || fail "$(cat out)"
for title in 'MAPE by Simulator' 'MAPE by Model' 'MAPE by Workload' \
    'MPE by Simulator (signed)' 'Simulator Runtime'; do
    grep -qF "=== $title ===" out || fail "no table $title"
done
grep -q '16 ran, 2 skipped, 0 failed' out || fail "$(grep ran out)"
# Seven simulators with nine metrics and one with three; two experiments, each with two
# stages and a summary.
[ "$(wc -l <results/error_records.csv)" -eq $((1 + 2 * 3 * (7 * 9 + 3))) ] ||
    fail "$(wc -l results/error_records.csv)"
[ "$(wc -l <results/runtime.csv)" -eq 17 ] || fail "$(cat results/runtime.csv)"
[ "$(grep -c $'\r$' results/runtime.csv)" -eq 17 ] || fail "line ends"

# ---- the same bytes for any number of jobs ----
good validate --data-dir "$truth" --output-dir again --jobs 1 --clock client
cmp results/error_records.csv again/error_records.csv || fail "--jobs changes results"

# ---- JSON, and a cut of both sides ----
good validate --data-dir "$truth" --output-dir cut --max-requests 12 --adapters vtwin-step --json --clock client
python3 - out <<'PY' || fail "$(cat out)"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["ok"] == 2 and d["failed"] == 0, d
assert all(r["requests"] == r["measured_requests"] == 12 for r in d["runs"]), d
assert d["simulators"]["vtwin-step"]["mape_summary"]["e2e_mean"]["n"] == 2, d
PY

# ---- directories of old, whose hardware another file tells ----
printf 'experiment_folder,hardware\n%s,H200\n' "$(basename "$legacy"/2026*)" >meta.csv
good validate --data-dir "$legacy" --metadata meta.csv --output-dir old --adapters vtwin-step --clock client
grep -q ',mt_warm_r4,.*,H200,' old/error_records.csv || fail "$(cat old/error_records.csv)"

# ---- what nobody measured so is carried over from what was, and both are said ----
grep -q 'OK: vtwin-step .* complete), measured, in-sample$' out || fail "$(cat out)"
sed 's/H200/H100/' meta.csv >h100.csv
good validate --data-dir "$legacy" --metadata h100.csv --output-dir new --adapters vtwin-step --clock client
grep -q 'OK: vtwin-step .* complete), transferred$' out || fail "$(cat out)"
good validate --data-dir "$legacy" --metadata h100.csv --output-dir new --adapters vtwin-step --clock client --json
grep -q '"basis": "transferred", "basis_from": "qwen3-8b-h200", "expected_error_pct": {"e2e": [1-9]' out || fail "$(cat out)"

# ---- what failed loads the engine until then, and is in no latency of either side ----
cp -r "$truth" failing
chmod -R u+w failing
python3 - failing/1-poisson-r18/results <<'PY'
import glob, json, sys
rows = json.load(open(sys.argv[1] + "/per_request_lifecycle_metrics.json"))
for r in rows[::4]: # given up after a tenth of a second
    r.update(end_time=r["start_time"] + 0.1, error={"error_type": "TimeoutError"}, info={})
json.dump(rows, open(sys.argv[1] + "/per_request_lifecycle_metrics.json", "w"))
for path in glob.glob(sys.argv[1] + "/s*.json"):
    d = json.load(open(path))
    d["successes"]["count"] -= 6 if "summary" in path else 3
    json.dump(d, open(path, "w"))
PY
vtwin validate --data-dir failing --output-dir failed --adapters vtwin-step blis-roofline --clock client
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
grep -q '1-poisson-r18: 6 requests failed (TimeoutError)' err || fail "$(cat err)"
grep -q 'OK: vtwin-step .* (poisson_r18) .* 24/24 requests (100.0% complete), 6 failed, in no latency' out ||
    fail "$(cat out)"
grep -q 'OK: blis-roofline .* (poisson_r18) .* 24/24 requests (100.0% complete)$' out || fail "$(cat out)"
# By a time-out that is stated, others give up here, too.
printf 'load:\n  request_timeout: 1\n' >failing/1-poisson-r18/results/config.yaml
vtwin validate --data-dir failing --output-dir failed --adapters vtwin-step --clock client
grep -Eq 'OK: vtwin-step .* \(poisson_r18\) .* 24/24 requests \(100.0% complete\), (9|1[0-9]|2[0-3]) failed' out ||
    fail "$(cat out)"

# ---- the generator makes what was committed ----
"$make" made "$VT_ROOT"/tests/sim/data/{poisson-r18,closed-c16}.trace.jsonl.gz --requests 24 --stages 2
diff -r made "$truth" || fail "make_ground_truth writes something else"

# ---- a simulator that fails stops nobody ----
vtwin validate --data-dir "$truth" --output-dir mixed --adapters broken vtwin-step \
    --adapter-command 'broken=exit 3; {requests.csv} {out.csv}'
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
grep -q 'FAIL: broken.*status 3' err || fail "$(cat err)"
grep -q '2 ran, 0 skipped, 2 failed' out || fail "$(cat out)"
vtwin validate --data-dir "$truth" --output-dir none --adapters broken \
    --adapter-command 'broken=exit 3; {requests.csv} {out.csv}'
[ "$status" -eq 0 ] && grep -q '0 ran, 0 skipped, 2 failed' out || fail "nobody could: $status $(cat err)"

# ---- what is over is in the files, whatever becomes of the rest; --json has progress too ----
cat >slow <<SH
#!/bin/sh
[ ! -e $PWD/seen ] || exec sleep 60
touch $PWD/seen
sleep 1.1
awk -F, 'NR == 1 { print "id,e2e_ms,ttft_ms"; next } { print \$1 ",1000,50" }' "\$1" >"\$2"
SH
chmod +x slow
"$VTWIN" validate --data-dir "$truth" --output-dir stopped --jobs 1 --json --progress \
    --adapters vtwin-step slow --adapter-command "slow=$PWD/slow {requests.csv} {out.csv}" \
    >out 2>err &
validating=$!
for _ in $(seq 400); do
    [ ! -e stopped/runtime.csv ] || break
    sleep 0.1
done
kill -9 "$validating"
wait "$validating" 2>/dev/null || true
pkill -P "$(pgrep -f "$PWD/slow" | head -1)" 2>/dev/null || true
pkill -f "$PWD/slow" || true
grep -q '^vtwin-step,.*1-poisson-r18' stopped/error_records.csv || fail "$(ls stopped; cat err)"
grep -q '^slow,' stopped/runtime.csv || fail "no runtimes"
grep -q 'predicted' err || fail "no progress: $(cat err)"

# ---- programs of others: what they are told and what is read back ----
cat >blis <<'SH'
#!/bin/sh
[ "$2" = --help ] && { echo "      $RESULTS string   File"; exit 0; }
echo "$*" >"$ARGS"
[ -z "$BROKEN" ] || { printf 'level=warning\nError: unknown flag: --x\nUsage:\n  blis run\n' >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in --metrics-path | --results-path) out=$2 ;; --workload-spec) cp "$2" "$ARGS.yaml" ;; esac
    shift
done
cat >"$out" <<'JSON'
{"e2e_mean_ms": 1000, "ttft_mean_ms": 50, "itl_mean_ms": 7, "requests": [
 {"e2e_ms": 900, "ttft_ms": 40, "itl_ms": 6, "num_prefill_tokens": 5, "num_decode_tokens": 9, "arrived_at": 0.0},
 {"e2e_ms": 1100, "ttft_ms": 60, "itl_ms": 8, "num_prefill_tokens": 5, "num_decode_tokens": 9, "arrived_at": 99.0},
 {"e2e_ms": 1}]}
JSON
SH
chmod +x blis
export ARGS=$PWD/args TMPDIR=$PWD/tmp RESULTS=--metrics-path BROKEN=
mkdir tmp
good validate --data-dir "$truth" --output-dir others --blis-binary blis --adapters blis-binary-roofline --jobs 1
grep -q 'run --model Qwen/Qwen3-8B --tp 1 --hardware H200 --max-num-running-reqs 256 --max-num-scheduled-tokens 8192 --total-kv-blocks 49626 --kv-cpu-blocks 0 --kv-offload-threshold 0.9 --kv-transfer-bandwidth 0.2 --seed 42 --workload-spec .* --metrics-path .* --latency-model roofline' args ||
    fail "$(cat args)"
grep -q '^num_requests: 24$' args.yaml || fail "$(cat args.yaml)"
grep -q ',0,e2e_mean,900.0,' others/error_records.csv || fail "stage 0: $(cat others/error_records.csv)"
grep -q ',1,ttft_mean,60.0,' others/error_records.csv || fail "stage 1: $(cat others/error_records.csv)"
grep -q ',-1,itl_mean,7.0,' others/error_records.csv || fail "summary: $(cat others/error_records.csv)"
[ -z "$(ls tmp)" ] || fail "temporary files are left: $(ls tmp)"
# Earlier releases call it otherwise; a configuration of the model is passed on.
mkdir -p configs/Qwen3-8B
cp "$VT_ROOT"/tests/cases/hf/*qwen3-8b*/config.json configs/Qwen3-8B/ 2>/dev/null ||
    echo '{"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "torch_dtype": "bfloat16", "architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 40960}' >configs/Qwen3-8B/config.json
RESULTS=--results-path good validate --data-dir "$truth" --output-dir others --blis-binary blis \
    --adapters blis-binary-crossmodel --jobs 1 --model-configs configs
grep -q -- '--model-config-folder configs/Qwen3-8B .* --results-path .* --latency-model crossmodel' args ||
    grep -q -- '--model-config-folder .*configs/Qwen3-8B .* --results-path .* --latency-model crossmodel' args ||
    fail "$(cat args)"
BROKEN=1 vtwin validate --data-dir "$truth" --output-dir broken --blis-binary blis --adapters blis-binary-roofline
grep -q 'ended with status 1: Error: unknown flag: --x$' err || fail "$(cat err)"

# ---- BLIS's own answers, kept as measurements: ours are the same ----
kinds='blackbox roofline crossmodel trained-roofline trained-physics
    blackbox-b05154c roofline-b05154c crossmodel-b05154c'
# Some are not for b05154c, which would never end.
vtwin validate --data-dir "$VT_ROOT/tests/cases/validate/blis" --output-dir same --jobs 2 \
    --adapters $(printf 'blis-%s ' $kinds)
[ "$status" -eq 0 ] || fail "$(cat err)"
for kind in $kinds; do
    awk -F, -v kind="$kind" '$1 == "blis-" kind && $4 == kind { n++; if ($9 > 1e-6) bad = bad " " $0 }
        END { exit n < 14 || bad != "" }' same/error_records.csv || fail "$kind is not BLIS's"
done

# ---- its requests as others want them ----
requests=$truth/1-poisson-r18/results/per_request_lifecycle_metrics.json
vtwin inspect convert "$requests" -o vidur.csv --to vidur
[ "$status" -eq 0 ] || fail "$(cat err)"
head -2 vidur.csv | tr '\n' ' ' |
    grep -q '^arrived_at,num_prefill_tokens,num_decode_tokens 0.0,797,337 $' || fail "$(head -2 vidur.csv)"
[ "$(wc -l <vidur.csv)" -eq 25 ] || fail "$(wc -l vidur.csv)"
vtwin inspect convert "$requests" -o sim.jsonl --to llmservingsim
[ "$status" -eq 0 ] || fail "$(cat err)"
python3 - sim.jsonl <<'PY' || fail "$(head -c 300 sim.jsonl)"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == 24
assert rows[0]["arrival_time_ns"] == 0 and rows[1]["arrival_time_ns"] > 0
assert rows[0]["input_toks"] == 797 and rows[0]["input_tok_ids"] == list(range(1, 798))
PY

# ---- nothing there, and what is refused ----
mkdir empty
good validate --data-dir empty
grep -q '^No experiments found in empty$' out || fail "$(cat out)"
bad 'nowhere: No such file' validate --data-dir nowhere
bad "unknown adapter 'vtwin-stp' .did you mean 'vtwin-step'" validate --data-dir "$truth" --adapters vtwin-stp
bad '--max-requests' validate --data-dir "$truth" --max-requests 0
echo '[{' >empty/experiments.json
bad 'experiments.json' validate --data-dir empty

# Clients were measured: predictions by another clock are told apart.
vtwin validate --data-dir "$truth" --output-dir engine --adapters vtwin-step
[ "$(grep -c "by clients' clocks, what vtwin-step predicts by the engine's" err)" = 1 ] ||
    fail "whose clock: $(cat err)"
[ "$(wc -l <err)" = 1 ] || fail "more: $(cat err)"
! cmp -s engine/error_records.csv results/error_records.csv || fail "a frontend adds nothing"
