# Host memory for KV blocks: by vLLM's flags, in every command with an engine.
multi=(--workload multiturn-starters --num-prompts 60 --num-gpu-blocks 4000)

field() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" out; }

good simulate "${multi[@]}"
! grep -q 'in host memory' out || fail "$(cat out)"
good simulate "${multi[@]}" --kv-offloading-size 100
grep -q '^  on the GPU [0-9.]* %, in host memory [0-9.]* %$' out || fail "$(cat out)"
grep -q '^  loads      [1-9]' out && grep -q '^  stores     [1-9]' out || fail "$(cat out)"
cp out sized

# The connector's own settings: the same size in bytes is the same run.
good simulate "${multi[@]}" --kv-transfer-config \
    '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
      "kv_connector_extra_config": {"cpu_bytes_to_use": 107374182400}}'
cmp out sized

# A small host gives up what it holds; a slow link makes requests wait.
good simulate "${multi[@]}" --kv-offloading-size 1 --json
[ "$(field evicted_chunks)" -gt 0 ] || fail "$(cat out)"
good simulate "${multi[@]}" --kv-offloading-size 100 --json
fast=$(field load_ms)
good simulate "${multi[@]}" --kv-offloading-size 100 --kv-offloading-bandwidth 5 --json
slow=$(field load_ms)
[ "${slow%.*}" -gt "$((3 * ${fast%.*}))" ] || fail "loads of $fast ms, then $slow ms"

good capacity --workload multiturn-starters --once --rates 0.2 --seeds 1 \
    --kv-offloading-size 10

bad 'only native is modelled' simulate "${multi[@]}" --kv-offloading-size 1 \
    --kv-offloading-backend lmcache
bad 'cpu_bytes_to_use must be specified' simulate "${multi[@]}" --kv-transfer-config \
    '{"kv_connector": "OffloadingConnector"}'
bad "eviction_policy 'fifo' is none of lru, arc" simulate "${multi[@]}" \
    --kv-transfer-config '{"kv_connector_extra_config": {"eviction_policy": "fifo"}}'
bad 'hold no chunk' simulate "${multi[@]}" --kv-offloading-size 0.0001
