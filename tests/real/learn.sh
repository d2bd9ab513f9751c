# shellcheck shell=bash disable=SC2154
# A profile of a real server, engine and all: learned in a few minutes, refused for nothing,
# and right about loads that it has not seen. The engine computes on a processor: it gets one
# of its own, and nothing begins before the machine is quiet.

# A model that computes for longer than a machine's noise lasts: some 15 ms a step.
cp -r "$model" wide
"$python" - <<'END'
import json
c = json.load(open("wide/config.json"))
c.update(hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
         num_key_value_heads=2, head_dim=64)
json.dump(c, open("wide/config.json", "w"))
END
memory=()
[ "$VERSION" = 0.26.0 ] || memory=(--gpu-memory-utilization 0.3)
start server "${vllm[@]}" serve wide --served-model-name tiny --dtype $dtype \
    --load-format dummy --max-model-len 2048 --block-size 32 --enforce-eager --max-num-seqs 12 \
    --max-num-batched-tokens 1024 --host 127.0.0.1 --port "$http" ${memory[@]+"${memory[@]}"}
server=$pid
wait_until_up

# The engine and its worker on one processor, the frontend and learn on another.
read -r engine_cpu other_cpu <<<"$("$python" -c '
import os
cpus = sorted(os.sched_getaffinity(0))
print(cpus[0], cpus[-1])')"
for process in $(family "$server"); do
    case $(ps -o args= -p "$process") in
    *EngineCore* | *Worker*) cpu=$engine_cpu ;;
    *) cpu=$other_cpu ;;
    esac
    taskset -apc "$cpu" "$process" >/dev/null
done

# quiet: the share of the machine that nobody used for some seconds is above 90 %.
quiet() {
    "$python" - <<'END'
import time
def idle():
    v = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return v[3] + v[4], sum(v)
(i0, t0), _, (i1, t1) = idle(), time.sleep(4), idle()
raise SystemExit(i1 - i0 < 0.9 * (t1 - t0))
END
}

# Again where a neighbour was in the way all the same: then the server's speed changes, which
# learn refuses, or what it has not seen comes at another speed.
for try in 1 2 3; do
    begun=$SECONDS
    until quiet || [ $((SECONDS - begun)) -gt 120 ]; do :; done
    taskset -c "$other_cpu" "$VTWIN" learn --base-url "$url" -o tiny.json --minutes 3 \
        --max-concurrency 16 --json >learned.json 2>"learn-$try.log" && break
    echo "try $try: $(tail -n 1 "learn-$try.log")"
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
