# A model's layers decide how its KV cache is laid out, in every command with an engine.
gemma=(--hf-config "$VT_ROOT/tests/cases/models/gemma-3-12b.json" --gpu H200)

peak() { sed -n 's/^peak KV use *\([0-9.]*\) %$/\1/p' out; }

good simulate "${gemma[@]}"
grep -q '^KV groups    5 x sliding_window 1024, full_attention$' out || fail "$(cat out)"
windows=$(peak)
good simulate "${gemma[@]}" --json
grep -q '"kv_groups": "5 x sliding_window 1024, full_attention"' out || fail "$(cat out)"

# Without windows a block is as large as all layers, and there are fewer of them.
good simulate "${gemma[@]}" --disable-hybrid-kv-cache-manager
! grep -q 'KV groups' out || fail "$(cat out)"
[ "$(peak)" != "$windows" ] || fail "windows make no difference: $windows %"

# Since 0.29 windows are kept at prompts' ends only: a prefix that ends elsewhere is found
# by its second user at the earliest, or where the interval keeps one before it.
cat >shared.yaml <<'END'
requests: 60
arrival: {process: constant, rate: 1}
prefix: {groups: 20, tokens: 2048}
prompt: 900
output: 20
END
hits() { # ARGS
    good simulate "${gemma[@]}" --workload shared.yaml "$@"
    sed -n 's/^prefix hits *\([0-9]*\).*/\1/p' out
}
every=$(hits --vllm-version 0.26)
ends=$(hits --vllm-version 0.32)
between=$(hits --vllm-version 0.32 --prefix-cache-retention-interval 1024)
[ "$ends" -lt "$between" ] && [ "$between" -le "$every" ] ||
    fail "$every % of all blocks, $ends % of ends, $between % of every 1024 tokens"
bad 'prefix-cache-retention-interval' simulate "${gemma[@]}" --vllm-version 0.32 \
    --prefix-cache-retention-interval 1000

# A served model's own layers count: with two groups a pool holds half the tokens.
cp -r "$VT_ROOT/tests/cases/tiny-qwen3" windows
python3 - <<'END'
import json
config = json.load(open("windows/config.json"))
config |= {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64,
           "use_sliding_window": True}
json.dump(config, open("windows/config.json", "w"))
END
for model in "$VT_ROOT/tests/cases/tiny-qwen3:524288" windows:262144; do
    serving "${model%:*}" --latency null --num-gpu-blocks 32768
    curl -s "$url/metrics" >metrics
    grep -q "kv_cache_size_tokens=\"${model#*:}\"" metrics ||
        fail "${model%:*}: $(grep cache_config_info metrics)"
done

# A fitted profile says what a block of its pool holds, whatever its model is called: vLLM
# 0.26 logged 452,218 tokens for these 103,408 blocks of gemma-3-12b.
mkdir mine
cp "$VT_ROOT/tests/trace/data/closed-c2.steps.jsonl.gz" mine/
{
    echo '{"meta":{"model":"/models/mine","vllm_version":"0.26.0","max_model_len":32768,' \
        '"num_gpu_blocks":103408,"block_size":16,"max_num_seqs":256,' \
        '"max_num_batched_tokens":8192,"async_scheduling":true}}'
    zcat "$VT_ROOT/tests/trace/data/closed-c2.trace.jsonl.gz" | sed 1d
} >mine/closed-c2.trace.jsonl
good fit mine --no-cv --hf-config "$VT_ROOT/tests/cases/models/gemma-3-12b.json" -o grouped.json --force
grep -q '"kv_cache_tokens": 452218' grouped.json || fail "$(cat grouped.json)"
of() { # PROFILE: on a load beyond what it was fitted on, of which it warns
    vtwin simulate --profile "$1"
    [ "$status" -eq 0 ] || fail "$(cat err)"
}
of grouped.json
grep -q '^KV groups    5 x sliding_window 1024, full_attention$' out || fail "$(cat out)"
grouped=$(peak)
sed '/"kv_groups"/,/\]/d' grouped.json >plain.json
of plain.json
! grep -q 'KV groups' out || fail "$(cat out)"
[ "$(peak)" != "$grouped" ] || fail "groups make no difference: $grouped %"
# Of a model that nobody knows blocks of all groups grow alike: as many hold twice as much.
vtwin simulate --profile grouped.json --block-size 32
[ "$status" -eq 0 ] || fail "$(cat err)"
grep -q '^KV groups    5 x sliding_window 1024, full_attention$' out || fail "$(cat out)"
awk -v is="$(peak)" -v was="$grouped" 'BEGIN { exit !(is < 0.7 * was) }' || fail "$(peak) of $grouped % with blocks twice as large"
sed '/full_attention/s/"block_size": 16/"block_size": 24/' grouped.json >uneven.json
bad "block-size 9: the profile's KV groups have blocks of 16 tokens and more, which can't grow" simulate --profile uneven.json --block-size 9
sed 's/"full_attention"/"some_attention"/' grouped.json >strange.json
bad "strange.json: KV group 5: line [0-9]*: no kind of attention 'some_attention'" simulate --profile strange.json
sed '/"kv_groups"/,/\]/c "kv_groups": [],' grouped.json >none.json
bad "'kv_groups' must be a list of 1 to 32 groups" simulate --profile none.json
