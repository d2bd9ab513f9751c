# shellcheck shell=bash
# AIConfigurator out of pip's index, asked by the adapter: a model by a directory, FP16 and
# FP8, dense and with experts, no more requests at a time than the engine takes.
place=$VT_ROOT/build/real/aiconfigurator
[ -x "$place/bin/aiconfigurator" ] || {
    python3 -m venv "$place"
    "$place/bin/pip" install -q "aiconfigurator==${AICONFIGURATOR_VERSION:-0.12.0}"
}
mkdir -p configs/Llama-3.1-8B-Instruct configs/Mixtral-8x7B-Instruct-v0.1
cat >configs/Llama-3.1-8B-Instruct/config.json <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
 "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
 "num_key_value_heads": 8, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
 "vocab_size": 128256}
JSON
cat >configs/Mixtral-8x7B-Instruct-v0.1/config.json <<'JSON'
{"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 4096,
 "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
 "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
 "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "vocab_size": 32000}
JSON
python3 - <<'PY'
import json, os
dist = {"mean": 1.0, "p90": 1.0, "p99": 1.0}
report = {"load_summary": {"count": 100}, "successes": {
    "count": 100, "output_len": {"mean": 248.0},
    "latency": {"request_latency": dict(dist, mean=2.0), "time_to_first_token": dist}}}
LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B-Instruct", "mistralai/Mixtral-8x7B-Instruct-v0.1"
cases = [("dense", LLAMA, 1, 128, "FP16"), ("fp8", LLAMA, 1, 128, "FP8"),
         ("experts", MIXTRAL, 2, 128, "FP16"), ("few", LLAMA, 1, 16, "FP16")]
manifest = []
for i, (name, model, tp, seqs, precision) in enumerate(cases, 1):
    at = f"truth/{i}-{name}"
    os.makedirs(at + "/results")
    files = {"exp-config.yaml": {"model": model, "tensor_parallelism": tp, "max_model_len": 4096,
                                 "max_num_batched_tokens": 2048, "max_num_seqs": seqs},
             "profile.yaml": {"load": {"stages": [{"rate": 10, "duration": 10}]},
                              "data": {"shared_prefix": {"system_prompt_len": 100,
                                                         "question_len": 447, "output_len": 248}}},
             "results/summary_lifecycle_metrics.json": report,
             "results/stage_0_lifecycle_metrics.json": report}
    for path, content in files.items():
        json.dump(content, open(f"{at}/{path}", "w"))
    open(at + "/vllm.log", "w").write("GPU KV cache size: 400000 tokens\n")
    manifest.append(dict(id=i, hw="H100", dp=None, cpu_offload=False, gpu_mem=0.9, safe="safe",
                         precision=precision, workload=name, done=True))
json.dump(manifest, open("truth/experiments.json", "w"))
PY
"$VTWIN" validate --data-dir truth --output-dir out --python "$place/bin/python" --aiconfigurator \
    --model-configs configs --adapters aiconfigurator-estimate --json >out.json || fail "$(cat out.json)"
python3 - <<'PY' || fail "$(cat out.json)"
import csv, json
runs = json.load(open("out.json"))["runs"]
assert [r["outcome"] for r in runs] == ["ok"] * 4, runs
got = {}
for row in csv.DictReader(open("out/error_records.csv")):
    if row["stage_index"] == "0":
        got.setdefault(row["workload"], {})[row["metric_name"]] = float(row["predicted"])
print(json.dumps(got, indent=1))
for name, m in got.items():
    assert abs(m["ttft_mean"] + 247 * m["itl_mean"] - m["e2e_mean"]) < 1e-6, (name, m)
    assert 5 < m["ttft_mean"] < 1000 and 1 < m["itl_mean"] < 100, (name, m)
assert got["fp8"]["itl_mean"] < got["dense"]["itl_mean"], got
# Little's law: at most as many at a time as the engine takes.
assert got["few"]["e2e_mean"] <= got["dense"]["e2e_mean"], got
PY
