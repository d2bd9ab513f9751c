# vtwin inspect: statistics, checks, calibration, conversion, figures, Chrome traces.
data=$VT_ROOT/tests/trace/data
trace=$data/closed-c2.trace.jsonl.gz
steps=$data/closed-c2.steps.jsonl.gz

# ---- stats ----
good inspect stats "$trace"
grep -Eq '^ +all +14 ' out
good inspect stats "$trace" --json
grep -q '"concurrency": 2, "requests": 13' out

# ---- validate ----
for file in "$trace" "$steps" "$data/azure.csv" "$data/mooncake.jsonl" \
    "$VT_ROOT/profiles/qwen3-8b-h200.json" "$VT_ROOT/profiles/default-workload.yaml"; do
    good inspect validate "$file"
    grep -qF "$file: " out || fail "silence about $file"
done
good inspect validate --all "$steps"
good inspect validate --kind workload "$VT_ROOT/profiles/default-workload.yaml"
gzip -dc "$trace" | sed '3s/"prompt_tokens":/"prompt_tokens":-/; 5s/$/}/' >bad.jsonl
bad "^vtwin: bad.jsonl: line 3: field 'prompt_tokens' must be from 1" inspect validate bad.jsonl
vtwin inspect validate bad.jsonl --all
[ "$status" -eq 2 ] || fail "exit $status from validate --all"
[ "$(wc -l <out)" -eq 2 ] || fail "not two bad lines: $(cat out)"
grep -q '^bad.jsonl: line 5: ' out
grep -q '^vtwin: bad.jsonl: 2 of 15 lines are bad$' err
gzip -dc "$steps" | sed '2s/"out_ms":[0-9.]*/"out_ms":0/' >bad.steps.jsonl
bad 'bad.steps.jsonl: line 2: sched_ms, .* do not run forward' inspect validate bad.steps.jsonl
rm bad.jsonl bad.steps.jsonl

# ---- calibrate: a model against its own run passes, knobs against a capture fail ----
good simulate --trace "$trace" --out run
good inspect calibrate run/requests.jsonl --profile qwen3-8b-h200 --tolerance 0.001
grep -q 'PASS$' out
# A simulation is not called a capture, and a profile that saw the capture is told.
grep -q '^simulated: run/requests.jsonl$' out || fail "$(head -3 out)"
! grep -q captured out || fail "a simulation is called captured"
good simulate --trace run/requests.jsonl --compare
grep -Eq '^metric +predicted +simulated +error' out || fail "$(cat out)"
vtwin inspect calibrate "$trace" --profile qwen3-8b-h200
grep -q '^captured: .*closed-c2' out
grep -q '^modelled: step: qwen3-8b-h200, in-sample$' out || fail "$(head -3 out)"
vtwin simulate --trace "$trace" --profile qwen3-8b-h200 --compare
grep -Eq '^metric +predicted +measured +error' out
grep -q '^in-sample: qwen3-8b-h200 was fitted on this capture$' out || fail "$(cat out)"
cp "$trace" unseen.trace.jsonl.gz
vtwin simulate --trace unseen.trace.jsonl.gz --profile qwen3-8b-h200 --compare
! grep -q 'in-sample' out || fail "another capture"
good inspect calibrate run/requests.jsonl --json
grep -q '"pass": true' out
vtwin inspect calibrate "$trace" --latency knob:inter_token_latency=50 --dump-samples s.json
[ "$status" -eq 1 ] || fail "exit $status from a model that is far off"
grep -q 'FAIL$' out
head -c 30 s.json | grep -q '^{"source":{"ttft_ms":\[[0-9]'
[ "$(wc -l <s.json)" -eq 3 ] || fail "samples of three sources: $(wc -l <s.json)"
bad 'takes one --profile or --latency' inspect calibrate "$trace" --latency null: --latency null:
# Without a tolerance the gate is what a second run would be; with another engine it is not.
good inspect calibrate run/requests.jsonl --profile qwen3-8b-h200
grep -q 'as far as a second run would be: PASS$' out || fail "$(tail -1 out)"
vtwin inspect calibrate run/requests.jsonl --profile qwen3-8b-h200 --max-num-seqs 1
[ "$status" -eq 1 ] || fail "exit $status from an engine of one seat"
grep -q 'TTFT p50, .* farther than a second run would be: FAIL$' out || fail "$(tail -1 out)"
vtwin inspect calibrate run/requests.jsonl --hf-config llama-3.1-8b --gpu H200
grep -q '^modelled: step: .*, estimated$' out || fail "$(head -3 out)"

# ---- calibrate --band: fitted on short prompts, asked for cold long ones ----
band=$VT_ROOT/tests/cases/band
good fit "$band/closed-c64.steps.jsonl.gz" "$band/closed-c64.trace.jsonl.gz" \
    "$VT_ROOT/tests/sim/data/mt-warm-r4.trace.jsonl.gz" --hf-config qwen3-8b --gpu H200 --no-cv -o cold.json
vtwin inspect calibrate "$band/mt-cold-c6.trace.jsonl.gz" --profile cold.json --band
grep -Eq '^verdict: 4.46 % of gaps in the band, (3.[89]|4.[0-9])[0-9] % modelled' out || fail "$(cat out)"
vtwin inspect calibrate "$band/mt-cold-c6.trace.jsonl.gz" --profile cold.json --band --json
grep -q '"upper_shelf": {' out
vtwin inspect calibrate "$band/mt-cold-c6.trace.jsonl.gz" --band --latency knob:inter_token_latency=8
[ "$status" -eq 1 ] || fail "exit $status from knobs without a band"
grep -q "band's mass, .*: FAIL$" out || fail "$(tail -1 out)"
bad 'no band: ' inspect calibrate "$band/tap-c1.trace.jsonl.gz" --band
bad 'give one of them' inspect calibrate "$trace" --band --tolerance 0.1

# ---- seeds: a second run agrees, one with another KV cache is named ----
good inspect seeds "$band/closed-c64.trace.jsonl.gz" "$band/closed-c64-again.trace.jsonl.gz"
grep -q '2 captures agree: PASS$' out
vtwin inspect seeds "$band/closed-c64.trace.jsonl.gz" "$VT_ROOT/tests/sim/data/K-closed-c64.trace.jsonl.gz" \
    "$band/closed-c64-again.trace.jsonl.gz"
[ "$status" -eq 1 ] || fail "exit $status from seeds with an odd one"
grep -q '^odd: .*/K-closed-c64.trace.jsonl.gz: TTFT p50 is ' out || fail "$(cat out)"
vtwin inspect seeds "$band/closed-c64.trace.jsonl.gz" "$band/closed-c64-again.trace.jsonl.gz" --json
grep -q '"pass": true' out
bad 'not the same load' inspect seeds "$band/closed-c64.trace.jsonl.gz" "$band/tap-c16.trace.jsonl.gz" \
    "$band/mt-cold-c6.trace.jsonl.gz"
bad 'is of Qwen/Qwen3-8B, .* of Qwen/Qwen3-30B-A3B' inspect seeds "$band/mt-cold-c6.trace.jsonl.gz" \
    "$band/M-mt-cold-c12.trace.jsonl.gz"
bad 'usage: vtwin inspect seeds TRACE TRACE' inspect seeds "$trace"

echo '{"prompt_tokens":1,"output_tokens":1}' >untimed.jsonl
bad 'has no measured times' inspect calibrate untimed.jsonl

# ---- the trace model learns from the file and is deterministic ----
good simulate --trace "$trace" --latency "trace:file=$trace" --out one --json
good simulate --trace "$trace" --latency "trace:file=$trace" --out two --json
cmp one/requests.jsonl two/requests.jsonl
good simulate --trace "$trace" --latency "trace:file=$trace" --seed 7 --out three --json
! cmp -s one/requests.jsonl three/requests.jsonl || fail "the seed changes nothing"

# ---- convert: there and back ----
good inspect convert "$trace" -o v.jsonl.gz --to vcr
good inspect convert v.jsonl.gz -o back.jsonl
good inspect convert "$trace" --out b.yaml
[ -e b.csv ] && [ -e b.itl.csv ] || fail "TraceV2 in parts"
good inspect convert b.csv -o b.jsonl
good inspect convert "$trace" -o list.csv
grep -q 'no measured times' out
good simulate --trace list.csv --quiet
for file in back.jsonl b.jsonl; do
    good inspect stats "$trace"
    cp out want
    good inspect stats $file
    tail -n 1 want | cut -c 1-70 | diff - <(tail -n 1 out | cut -c 1-70) || fail "$file"
done
bad 'where to\?' inspect convert "$trace"
bad "no measured times, which a vllm-vcr trace needs" inspect convert list.csv -o x --to vcr
bad "'xml' is none of" inspect convert "$trace" -o x --from xml

# ---- convert: what prompts share by their tokens, turns of conversations ----
tiny=$VT_ROOT/tests/cases/tiny-qwen3
good inspect convert "$VT_ROOT/tests/trace/data/inference-perf-0.7.json.gz" -o shared.jsonl --tokenizer "$tiny"
[ "$(grep -c '"segments":\[\["text-[0-9a-f]*",96\],' shared.jsonl)" -gt 20 ] || fail "system prompts of 96 tokens"
bad "no prompts for a tokenizer in a file of format 'vtwin'" inspect convert "$trace" -o x --tokenizer "$tiny"
bad "tokenizer: nowhere: " inspect convert "$trace" -o x --tokenizer nowhere
turn() { # ID CONVERSATION TURN START
    echo "{\"request_id\":\"$1\",\"info\":{\"conversation_id\":\"$2\",\"turn_index\":$3},\"prompt_tokens\":10," \
        "\"output_tokens\":5,\"time_to_first_token_ms\":100,\"inter_token_latency_ms\":25,\"request_start_time\":$4}"
}
echo "{\"benchmarks\":[{\"config\":{\"strategy\":{\"type_\":\"concurrent\",\"streams\":1}},\"requests\":{\"successful\":[" \
    "$(turn a0 a 0 10),$(turn a1 a 1 12),$(turn b0 b 0 14)]}}]}" >talks.json
good inspect convert talks.json -o talks.jsonl
grep -q '"workload":{"kind":"multiturn","concurrency":1' talks.jsonl || fail "no sessions: $(head -n 1 talks.jsonl)"
grep -q '"id":"a1".*"session":"a","turn":1,"think_ms":1800' talks.jsonl || fail "no turn: $(cat talks.jsonl)"
good simulate --trace talks.jsonl --quiet

# ---- perfetto ----
good inspect perfetto "$trace" --steps "$steps" -o chrome.json
grep -q '14 requests and 1136 steps' out
[ "$(grep -c '"cat":"step"' chrome.json)" -eq 1136 ] || fail "steps in the Chrome trace"

# ---- plot ----
good inspect plot "$trace" --steps "$steps" -o figures --format svg,html
[ "$(ls figures | wc -l)" -eq 8 ] || fail "figures: $(ls figures)"
grep -q '<figure class="drawn" id="timeline">' figures/index.html
good inspect plot "$trace" -o one.png --figure itl-qq
[ -s one.png ] || fail "no picture"
good inspect plot "$trace" -o page.html
# Files beside each other, of one load: a simulation, samples, a step log, and a model asked for.
good inspect plot "tap=$band/tap-c1.trace.jsonl.gz" "twin=run" s.json "engine=$steps" \
    --latency knob:inter_token_latency=5 --figure itl-survival -o overlay.svg
for name in tap twin source replay knobfit engine knob:inter; do
    grep -q ">.*$name" overlay.svg || fail "no $name in the picture"
done
# Two loads, each with a model that serves it and knobs fitted to it.
good inspect plot "1 client:tap=$band/tap-c1.trace.jsonl.gz" "16 clients:tap=$band/tap-c16.trace.jsonl.gz" \
    --profile qwen3-8b-h200 --fits knob -o loads --format svg
[ "$(ls loads)" = comparison.svg ] || fail "loads: $(ls loads)"
for name in '1 client' '16 clients' 'step: qwen3-8b-h200' 'knob, best fit'; do
    grep -q ">.*$name" loads/comparison.svg || fail "no $name in the picture"
done
bad 'shows one load, not 2' inspect plot "a:x=$trace" "b:x=$trace" --figure timeline -o x
bad 'a page is of one load' inspect plot "a:x=$trace" "b:x=$trace" --fits none -o x.html
bad "'all' is none of trace, knob, none" inspect plot "$trace" --fits all -o x.svg
bad 'no.json: ' inspect plot "$trace" no.json -o x.svg
echo '{"a":{"itl_ms":[-1]}}' >bad.json
bad "bad.json: line 1: 'itl_ms' must hold milliseconds only" inspect plot "$trace" bad.json -o x.svg
[ ! -e x.svg ] || fail "a picture of bad input"
bad "none of itl-survival" inspect plot "$trace" -o x --figure pie
bad "'gif' is none of pdf, svg, png, html" inspect plot "$trace" -o x --format svg,gif
mkdir nothing
status=0
PATH=$PWD/nothing "$VTWIN" inspect plot "$trace" -o none >out 2>err || status=$?
[ "$status" -eq 3 ] || fail "exit $status without gnuplot"
grep -q 'gnuplot-nox' err
[ ! -e none ] || fail "a directory is left without gnuplot"

# ---- usage ----
bad "did you mean 'stats'" inspect stat "$trace"
bad 'usage: vtwin inspect stats TRACE' inspect stats
bad 'tolerance is not for inspect stats' inspect stats "$trace" --tolerance 1
bad 'usage: vtwin inspect' inspect
