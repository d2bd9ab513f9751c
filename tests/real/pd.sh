# shellcheck shell=bash disable=SC2154
# A Python frontend with the twin behind it that prefills for itself and decodes: what
# NixlConnector's statistics say is on the frontend's page.
config=(--kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}')
VLLM_NIXL_SIDE_CHANNEL_PORT=$(ports 1)
export VLLM_NIXL_SIDE_CHANNEL_PORT
play --num-gpu-blocks 130 --gpu H100 --latency linear:base=1000 --vllm-version "$VERSION" "${config[@]}"
python_frontend "${config[@]}"
wait_until_up
"$python" - "$url" "$VERSION" <<'END' || fail "the page: $(tail -n 20 frontend.log)"
import json, sys, urllib.request
url, version = sys.argv[1:]
def ask(**more):
    body = {"model": "tiny", "prompt": list(range(100, 500)), "max_tokens": 1, **more}
    q = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                               {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(q))
told = ask(kv_transfer_params={"do_remote_decode": True})["kv_transfer_params"]
assert len(told["remote_block_ids"][0]) == 25, told
assert ask(max_tokens=2, kv_transfer_params=told)["usage"]["completion_tokens"] == 2
ask(prompt=[1, 2, 3])
page = urllib.request.urlopen(url + "/metrics").read().decode()
def value(name):
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(f"vllm:nixl_{name}{{"))
for name in ("xfer_time_seconds", "post_time_seconds", "bytes_transferred", "num_descriptors"):
    assert value(name + "_count") == 1 and value(name + "_sum") > 0, (name, value(name + "_sum"))
assert value("num_failed_transfers_total") == 0
print("ok", value("bytes_transferred_sum"), "bytes in", value("num_descriptors_sum"), "descriptors")
END
both_end
