# shellcheck shell=bash disable=SC2154
# A Python frontend with the twin behind it that keeps KV blocks in the host's memory: what
# kv_connector_stats say is on the frontend's page.
config=(--kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
    "kv_connector_extra_config": {"cpu_bytes_to_use": 100000000, "store_threshold": 2}}')
play --num-gpu-blocks 130 --gpu H100 --latency linear:base=1000 --vllm-version "$VERSION" "${config[@]}"
python_frontend "${config[@]}"
wait_until_up
"$python" - "$url" "$VERSION" <<'END' || fail "the page: $(tail -n 20 frontend.log)"
import json, sys, urllib.request
url, version = sys.argv[1:]
for _ in range(3): # seen often enough, stored, loaded
    for i in range(8):
        body = {"model": "tiny", "prompt": list(range(100 + 400 * i, 500 + 400 * i)), "max_tokens": 4,
                "ignore_eos": True}
        ask = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
        assert json.load(urllib.request.urlopen(ask))["usage"]["completion_tokens"] == 4
page = urllib.request.urlopen(url + "/metrics").read().decode()
def value(name, label=""):
    return sum(float(line.split()[-1]) for line in page.splitlines()
               if line.startswith(name + "{") and label in line)
told = {name: value("vllm:kv_offload_" + name) for name in (
    "load_bytes_total", "load_time_total", "load_size_count", "store_bytes_total", "store_time_total",
    "store_size_count", "lookup_sync_delay_seconds_count", "cpu_allocation_size_count",
    "stores_skipped_total", "total_bytes_total", "size_count")}
print("ok", told)
assert told["load_size_count"] == 8 and told["store_size_count"] == 8, told
assert told["lookup_sync_delay_seconds_count"] >= 24 and told["stores_skipped_total"] > 0, told
assert told["load_bytes_total"] == told["store_bytes_total"] > 0, told
assert told["total_bytes_total"] == 2 * told["load_bytes_total"], told
assert told["load_time_total"] > 0 and told["store_time_total"] > 0 and told["size_count"] == 16, told
assert "vllm:kv_offload_cpu_cache_usage_perc" in page
if version >= "0.32":
    assert value("vllm:prompt_tokens_cached_by_source_total", 'source="host"') == 3200
    assert "vllm:num_requests_kv_fetch_by_stage" in page
END
both_end
