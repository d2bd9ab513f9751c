# Captures become a profile that simulate takes; bad captures are refused by name.
data=$VT_ROOT/tests/sim/data
good fit "$data" --hf-config qwen3-8b --gpu H200 -o mine.json
grep -q '^captures  4, ' out
grep -q '^leave one out' out
grep -Eq '^median size +' out
cp mine.json first.json
good fit "$data" --hf-config qwen3-8b --gpu H200 --no-cv -o mine.json
own() { sed '/"out_of_sample"/d; /"expected_error_pct"/d; s/},$/}/' "$1"; } # the rest is the same
[ "$(own mine.json)" = "$(own first.json)" ] || fail "the same captures give another profile"
! grep -q 'leave one out' out || fail "--no-cv cross-validates"
good simulate --profile mine.json --trace "$data/closed-c16.trace.jsonl.gz" --compare
good profile show first.json
! grep -q expected_error_pct mine.json || fail "nothing was left out, and yet: $(cat mine.json)"

# What is expected to be off is what was, of captures left out: one that its clients saw
# otherwise moves it.
mkdir moved
for capture in closed-c1 closed-c16 cold-c6; do
    cp "$VT_ROOT/bench/captures/llama-3.2-3b/llama-3.2-3b-$capture".* moved
done
good fit moved --hf-config llama-3.2-3b --gpu H200 -o before.json
# The captures say which GPU it was.
good fit moved --hf-config llama-3.2-3b --name before -o stated.json
cmp before.json stated.json
gunzip moved/*-closed-c16.trace.jsonl.gz
cat >later.py <<'PY'
import glob, json
[path] = glob.glob("moved/*-closed-c16.trace.jsonl")
meta, *rows = (json.loads(line) for line in open(path))
for r in rows:
    r["ttft_ms"] += 40
with open(path, "w") as file:
    file.writelines(json.dumps(r) + "\n" for r in [meta, *rows])
PY
python3 later.py
good fit moved --hf-config llama-3.2-3b --gpu H200 -o after.json --force
cat >expected.py <<'PY'
import json
a, b = (json.load(open(f))["expected_error_pct"] for f in ("before.json", "after.json"))
assert min(a.values()) > 0, a
assert abs(b["ttft"] - a["ttft"]) > 5 and b["itl"] == a["itl"], (a, b)
PY
python3 expected.py
rm -r moved

good fit "$VT_ROOT/tests/trace/data/closed-c2.steps.jsonl.gz" \
    "$VT_ROOT/tests/trace/data/closed-c2.trace.jsonl.gz" -o logged.json
grep -q '{"name": "closed-c2", "steps": [0-9]*, "seconds": [0-9.]*}' logged.json
grep -q 'note .*one capture' out
# One capture of two clients knows little: beyond it, simulate says so.
vtwin simulate --profile logged.json
[ "$status" -eq 0 ] || fail "exit $status: $(cat err)"
grep -q 'warning: context in a step reached .* fitted up to' err
good fit --otlp "$VT_ROOT/tests/trace/data/otlp-close10.jsonl.gz" -o traced.json
grep -Eq '^otlp +[0-9]+ steps' out
good profile show traced.json
rm traced.json
# Steps that overlap took less than they state: no profile of that.
vtwin fit --otlp "$VT_ROOT/tests/trace/data/otlp-close10.jsonl.gz" --step-time duration -o traced.json
[ "$status" -eq 1 ] && [ ! -e traced.json ] || fail "exit $status: $(cat out err)"
grep -q '^vtwin: the fit does not even predict.*E2E is off by .*nothing is written' err || fail "$(cat err)"
good fit --otlp "$VT_ROOT/tests/trace/data/otlp-close10.jsonl.gz" --step-time duration -o traced.json --force
tail -n 1 out | grep -q '^profile: traced.json, by force: the fit does not' || fail "$(cat out)"
vtwin simulate --profile traced.json --num-gpu-blocks 40000
grep -q "^vtwin: warning: profile 'traced' was written by force: the fit does not" err || fail "$(cat err)"
grep -q 'traced (by force)' out || fail "$(cat out)"
# Spans of whole requests know no steps.
good fit --otlp "$VT_ROOT/tests/trace/data/otlp-upstream-0.26.0.jsonl.gz" -o traced.json --force
mkdir spans
cp "$VT_ROOT/tests/trace/data/otlp-close10.jsonl.gz" spans/
good fit --otlp spans -o traced.json
for model in blackbox knob; do
    good fit "$data" --kind $model -o simple.json
    grep -q "\"kind\": \"$model\"" simple.json
    good simulate --profile simple.json --json
done
rm -rf -- *.json spans

mkdir empty
: >other.txt
printf '{"step":1}\n' >bad.steps.jsonl
printf '{"meta":{}}\n{"prompt_tokens":1,"output_tokens":1}\n' >untimed.trace.jsonl
bad 'No such file' fit nowhere -o p.json
bad 'empty: no trace, step log, report or spans in it' fit empty -o p.json
bad 'other.txt: the file is empty' fit other.txt -o p.json
bad 'bad.steps.jsonl: line 1: ' fit bad.steps.jsonl -o p.json
bad 'no timings to fit' fit untimed.trace.jsonl -o p.json
bad 'empty: no .jsonl' fit --otlp empty -o p.json
bad 'other.txt: ' fit --otlp other.txt -o p.json
bad 'unknown GPU|no GPU' fit "$data" --hf-config qwen3-8b --gpu H999 -o p.json
bad "'stap'" fit "$data" --kind stap -o p.json
