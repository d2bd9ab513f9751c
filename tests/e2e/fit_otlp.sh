# shellcheck shell=bash disable=SC2154
# Spans in, data sets, coefficients and a model out; what inspect makes of spans.
data=$VT_ROOT/tests/trace/data
spans=$data/otlp-close10.jsonl.gz

# ---- both data sets, with the columns of the document first ----
good fit --otlp "$spans" --kind regression --alpha-csv a.csv --beta-csv b.csv -o p.json
head -n 1 a.csv | grep -q '^alpha_latency_ms,prompt_tokens,queue_depth,running_depth,kv_ratio,model_size,hw_type,tp,'
head -n 1 b.csv | grep -q '^step_duration_us,num_prefill,num_decode,prefill_tokens,decode_tokens,kv_ratio,model_type,hw,tp,'
[ "$(wc -l <a.csv)" -eq 12 ] && [ "$(wc -l <b.csv)" -eq 121 ] || fail "rows: $(wc -l a.csv b.csv)"
grep -q ',stall$' b.csv && grep -q ',warm-up$' a.csv || fail "rules"
for word in '^alpha, QUEUED to SCHEDULED: linear' '^beta, a step: linear' us/token 'held out' \
    'measured     formula   simulated' '^  queue mean'; do
    grep -q -- "$word" out || fail "no '$word' in $(cat out)"
done
python3 - <<'P' || fail "the profile"
import json
p = json.load(open("p.json"))
assert p["model"]["kind"] == "regression" and "arrive" in p["model"]["params"]
learned = p["provenance"]["learned"]
assert learned["beta"]["coefficients_us"]["intercept"] == p["model"]["params"]["intercept"]
assert {"alpha", "arrive", "beta"} == set(learned)
P
vtwin simulate --trace "$spans" --profile p.json --compare # it warns of what was not seen
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -Eq '^queue +mean ms' out || fail "no queue row: $(cat out)"

# ---- a model's and a GPU's features, by the document's JSON ----
cat >config.json <<'J'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
 "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32,
 "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096}
J
cat >hw.json <<'J'
{"X100": {"memory_bandwidth_gb_s": 3350, "compute_tflops_fp16": 989, "memory_gb": 80,
          "sm_count": 132}}
J
good fit --otlp "$spans" --kind regression --beta-csv c.csv --hf-config config.json --hw hw.json \
    --gpu X100 --learner nonnegative --degree 2 --beta-terms \
    'prefill_tokens*model_layers,decode_tokens*kv_blocks,num_decode' \
    --alpha-terms 'queue_depth*kv_ratio,prompt_length*batch_fullness'
grep -q '^  prefill_tokens\*layers ' out && grep -q 'us/(token\*block)' out || fail "$(cat out)"
python3 - <<'P' || fail "derived features"
import csv
row = next(csv.DictReader(open("c.csv")))
assert (row["model_type"], row["hw"], row["attention"]) == ("dense", "X100", "GQA"), row
assert row["size_proxy"] == str(4096 * 32) and row["layers"] == "32"
assert float(row["kv_bytes_per_token"]) == 2 * 32 * 8 * 128 * 2
assert abs(float(row["compute_to_bandwidth"]) - 989 / 3.35) < 1e-3
assert float(row["relative_factor"]) == 1 and float(row["memory_gb"]) == 80
P
bad "unknown feature 'num_decod'" fit --otlp "$spans" --kind regression --beta-terms num_decod
bad 'no step can be seen' fit --otlp "$data/otlp-upstream-0.26.0.jsonl.gz" --kind regression -o no.json
[ ! -e no.json ] || fail "a profile without steps"

# ---- inspect reads spans ----
good inspect validate "$spans"
grep -q '10 of the API server, 11 of requests, 13 of steps' out || fail "$(cat out)"
good inspect stats "$spans"
grep -Eq '^ +all +11 ' out || fail "$(cat out)"
good inspect convert "$spans" -o as.jsonl
grep -q '^11 requests from otlp to vtwin' out
good inspect stats as.jsonl
cp out straight
good inspect stats "$spans"
cmp out straight || fail "spans and the trace made of them differ"
good inspect convert "$spans" -o as.csv
good inspect perfetto "$spans" -o chrome.json
grep -q '11 requests and 120 steps' out || fail "$(cat out)"
good inspect plot "$spans" -o page.html --latency linear:base=10000
# KV-cache events: a store of 4 blocks in 2 ms and a
# load of 3 in 1 ms, in two steps.
gzip -dc "$spans" >kv.jsonl
python3 - <<'P' || fail "no spans of steps"
import json
def event(at, name, step, blocks, transfer, to):
    ints = {"step.id": step, "block_count": blocks, "transfer_id": transfer}
    attributes = [{"key": k, "value": {"intValue": str(v)}} for k, v in ints.items()]
    attributes.append({"key": "destination", "value": {"stringValue": to}})
    return {"timeUnixNano": str(at), "name": "kv." + name, "attributes": attributes}
lines = [json.loads(l) for l in open("kv.jsonl")]
span = next(s["spans"][0] for l in lines for r in l["resourceSpans"] for s in r["scopeSpans"]
            if s["scope"]["name"] == "vllm.scheduler.step")
at = int(span["events"][0]["timeUnixNano"])
span["events"] += [event(at, "TransferInitiated", 20, 4, 1, "CPU"),
                   event(at + 2000000, "TransferCompleted", 20, 4, 1, "CPU"),
                   event(at + 2000000, "CacheStoreCommitted", 20, 4, 1, "CPU"),
                   event(at, "TransferInitiated", 21, 3, 2, "GPU"),
                   event(at + 1000000, "TransferCompleted", 21, 3, 2, "GPU")]
open("kv.jsonl", "w").write("".join(json.dumps(l) + "\n" for l in lines))
P
good inspect stats kv.jsonl
grep -q '^  stored .*1 events, 4 blocks' out || fail "$(tail -8 out)"
grep -q '^  stores .*1 events, 4 blocks, 2.000 ms each, 0.500 ms a block' out || fail "$(tail -8 out)"
grep -q '^  loads .*1 events, 3 blocks, 1.000 ms each' out || fail "$(tail -8 out)"
grep -Eq '^ +20 +4 +4 +0 +2.000 +0.000$' out || fail "$(tail -8 out)"

# Alone, as a subscriber writes them, they are counted; nothing can be fitted on them.
echo '[1794714579.9, [["CacheStoreCommitted", "r", "CPU", 4, 17], ["BlockRemoved", [7]]], null, 3]' >alone.jsonl
good inspect stats alone.jsonl
grep -q '^  1 CacheStoreCommitted$' out || fail "$(cat out)"
good inspect validate alone.jsonl
bad "neither a step nor a request whose time is known" fit --otlp alone.jsonl -o none.json

# ---- what went in comes out: a recording of serve with a known model ----
serving --latency linear:base=1500,prefill_token=3,decode=12,context_token=0.002 \
    --otlp-traces-endpoint file:recorded.jsonl.gz
good bench serve --model vtwin --base-url "$url" --num-prompts 250 --random-input-len 200 \
    --random-range-ratio 0.8 --random-output-len 40 --max-concurrency 24
kill -TERM "${servers[-1]}"
wait "${servers[-1]}" || fail "serve ended badly"
good fit --otlp recorded.jsonl.gz --kind regression -o known.json \
    --beta-terms num_prefill,num_decode,prefill_tokens,decode_context
python3 - <<'P' || fail "what went in does not come out: $(cat out)"
import json
c = json.load(open("known.json"))["model"]["params"]
for name, want in (("intercept", 1500), ("prefill_tokens", 3), ("num_decode", 12)):
    assert abs(c[name] / want - 1) < 0.01, (name, c[name])
P

# ---- the link to the host, from transfers that serve tells of ----
serving --served-model-name vtwin --num-gpu-blocks 1200 --kv-offloading-size 40 \
    --kv-offloading-bandwidth 24 --kv-offloading-setup-us 500 \
    --otlp-traces-endpoint file:moved.jsonl.gz
for _ in 1 2; do # what the second asks for, the GPU has forgotten
    good bench serve --model vtwin --base-url "$url" --num-prompts 40 --random-input-len 800 \
        --random-range-ratio 0.9 --random-output-len 3 --max-concurrency 4 --seed 3
done
kill -TERM "${servers[-1]}"
wait "${servers[-1]}" || fail "serve ended badly"
moved=(fit --otlp moved.jsonl.gz --gpu H200 --no-cv --force)
good "${moved[@]}" --hf-config qwen3-8b -o moved.json
python3 - <<'P' || fail "the link: $(cat out)"
import json
link = json.load(open("moved.json"))["engine"]["offload"]
for name, want in (("load_gb_per_s", 24), ("store_gb_per_s", 24), ("setup_us", 500)):
    assert abs(link[name] / want - 1) < 0.03, (name, link)
P
multi=(--workload multiturn-starters --num-prompts 40 --num-gpu-blocks 3000 --seed 1
    --kv-offloading-size 100 --json --quiet)
load_ms() { sed -n 's/^ *"load_ms": \([0-9.]*\),*$/\1/p' out; }
vtwin simulate --profile moved.json --hf-config qwen3-8b "${multi[@]}"
[ "$status" -eq 0 ] || fail "$(cat err)"
learned=$(load_ms)
vtwin simulate --profile moved.json --hf-config qwen3-8b "${multi[@]}" \
    --kv-offloading-bandwidth 24 --kv-offloading-setup-us 500
awk -v a="$learned" -v b="$(load_ms)" 'BEGIN { exit !(a > 0 && a / b > 0.97 && a / b < 1.03) }' ||
    fail "loads take $learned ms by the profile, $(load_ms) by flags"
# Blocks of another model are four times as large: no link is that fast.
sed 's/"num_hidden_layers": 32/"num_hidden_layers": 36/; s/"num_key_value_heads": 8/"num_key_value_heads": 32/' \
    config.json >wide.json
vtwin fit --otlp moved.jsonl.gz --gpu H200 --no-cv --hf-config wide.json -o no.json
[ "$status" -eq 1 ] && grep -q 'move 96 GB/s, but H200 moves no more than 64 one way' err || fail "$(cat err)"
[ ! -e no.json ] || fail "a profile beyond physics"
vtwin fit --otlp moved.jsonl.gz --no-cv -o no.json
grep -q '^note .*nobody what one takes' out || fail "$(cat out err)"
