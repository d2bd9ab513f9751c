# shellcheck shell=bash disable=SC2154
# A profile of a real server, engine and all: learned in a minute or two, refused for nothing,
# and right about loads that it has not seen.
memory=()
[ "$VERSION" = 0.26.0 ] || memory=(--gpu-memory-utilization 0.3)
start server "${vllm[@]}" serve "$model" --served-model-name tiny --dtype $dtype \
    --load-format dummy --max-model-len 2048 --block-size 32 --enforce-eager --max-num-seqs 12 \
    --max-num-batched-tokens 1024 --host 127.0.0.1 --port "$http" ${memory[@]+"${memory[@]}"}
server=$pid
wait_until_up
# Again where a busy machine was in the way: the engine computes on the same processors.
for try in 1 2 3; do
    "$VTWIN" learn --base-url "$url" -o tiny.json --minutes 2 --max-concurrency 16 --json \
        >learned.json 2>"learn-$try.log" && break
    tail -n 1 "learn-$try.log"
    [ $try -lt 3 ] || fail "learn"
done
"$python" - <<'END' || fail "what it learned"
import json
r = json.load(open("learned.json"))
p = json.load(open("tiny.json"))
e = r["unseen_error_percent"]
print(f"ok {r['model_kind']}: E2E {e['e2e']} %, TTFT {e['ttft']} %, ITL {e['itl']} % off (medians)")
assert max(e["e2e"], e["ttft"], e["itl"]) <= 15, e
s = r["server"]
assert s["max_num_seqs"] == 12 and s["max_num_batched_tokens"] == 1024, s
assert s["max_model_len"] == 2048 and s["block_size"] == 32 and s["num_gpu_blocks"] > 0, s
assert p["engine"]["num_gpu_blocks"] == s["num_gpu_blocks"], p["engine"]
END
stop "$server" || fail "the server did not end"
