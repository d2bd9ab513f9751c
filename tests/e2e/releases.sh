# Options that not every release of vLLM has, and what they do where they are.
{
    echo id,arrival_us,input_tokens,output_tokens
    for i in 0 1 2 3 4 5 6 7 8 9; do echo "r$i,0,600,20"; done
} >ten.csv
load=(--requests ten.csv --latency linear:base=1000 --quiet)
most() { # FIELD FLAGS: its largest value in a step
    local field=$1
    shift
    rm -rf report
    good simulate "${load[@]}" "$@" --out report
    sed "s/.*\"$field\":\([0-9]*\).*/\1/" report/steps.jsonl | sort -n | tail -1
}
most_tokens() { # FLAGS: the longest piece of a prompt
    rm -rf report
    good simulate "${load[@]}" "$@" --out report
    grep -o '\["[^]]*\]' report/steps.jsonl | cut -d, -f3 | sort -n | tail -1
}

# ---- since 0.31 ----
[ "$(most running)" = 10 ] || fail "not all run together"
[ "$(most running --max-num-active-seqs 3)" = 3 ] || fail "--max-num-active-seqs"
bad 'max-num-active-seqs came with vLLM 0.31, but this is 0.30$' simulate "${load[@]}" \
    --max-num-active-seqs 3 --vllm-version 0.30
bad 'max_num_active_seqs .65. cannot be greater than max_num_seqs .64.\.$' simulate \
    "${load[@]}" --max-num-seqs 64 --max-num-active-seqs 65
cut=(--long-prefill-token-threshold 64 --max-num-batched-tokens 2048)
[ "$(most_tokens "${cut[@]}")" = 64 ] || fail "the threshold cuts nothing: $(most_tokens "${cut[@]}")"
[ "$(most_tokens "${cut[@]}" --long-prefill-token-threshold-adaptive)" -gt 64 ] || fail "not adaptive"
bad 'long-prefill-token-threshold-adaptive came with vLLM 0.31, but this is 0.26$' simulate \
    "${load[@]}" "${cut[@]}" --long-prefill-token-threshold-adaptive --vllm-version 0.26

# ---- the threshold itself: since 0.27 it is held against the model's length ----
long=(--max-model-len 4096 --long-prefill-token-threshold 4097)
good simulate "${load[@]}" "${long[@]}" --vllm-version 0.26
for version in 0.27 0.32; do
    bad 'long_prefill_token_threshold .4097. cannot be greater than the max_model_len .4096.\.$' \
        simulate "${load[@]}" "${long[@]}" --vllm-version $version
done

# ---- 0.26 only ----
for flag in --max-num-partial-prefills --max-long-partial-prefills; do
    good simulate "${load[@]}" --vllm-version 0.26 $flag 1
    bad "^vtwin: $flag is of vLLM 0.26 only$" simulate "${load[@]}" --vllm-version 0.27 $flag 1
    for command in simulate capacity tune serve play validate; do
        bad 'Concurrent Partial Prefill is not supported. We recommend to remove Concurrent Partial Prefill from your config\.$' \
            "$command" --vllm-version 0.26 $flag 2
    done
done

# ---- all of them ----
[ "$(most_tokens --max-num-scheduled-tokens 100)" = 100 ] || fail "--max-num-scheduled-tokens"

# ---- adapters: so many in one step, each with a prefix cache of its own ----
{
    echo id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens,lora
    for i in 0 1 2 3 4 5; do echo "r$i,$i,600,20,all,512,adapter-$((i % 3))"; done
} >adapters.csv
load=(--requests adapters.csv --latency linear:base=1000 --quiet)
[ "$(most decodes)" = 2 ] || fail "by default one adapter at a time"
[ "$(most decodes --max-loras 2)" = 4 ] || fail "--max-loras 2"
[ "$(most decodes --max-loras 3)" = 6 ] || fail "--max-loras 3"
hits() { sed -n 's/^prefix hits  \([0-9]*\).*/\1/p' out; }
good simulate "${load[@]}" --max-loras 3
apart=$(hits)
sed -i 's/adapter-.$/one/' adapters.csv
good simulate "${load[@]}"
[ "$(hits)" -gt "$apart" ] || fail "prefixes are shared by adapters: $apart, $(hits)"
# A report keeps them.
grep -q '"lora":"adapter-2"' report/requests.jsonl || fail "$(cat report/requests.jsonl)"
cp -r report first
load=(--trace first/requests.jsonl --latency linear:base=1000 --quiet)
[ "$(most decodes --max-loras 2)" = 4 ] || fail "a trace's adapters are not counted"

# ---- serve's queue: since 0.29, and nobody else has one ----
for flag in --max-num-queued-reqs --max-num-queued-tokens; do
    bad "^vtwin: $flag came with vLLM 0.29, but this is 0.28$" serve --vllm-version 0.28 $flag 5
    bad "unknown flag '$flag'" simulate $flag 5
done
bad "^vtwin: --max-num-queued-tokens: '5x' is not a number of tokens$" serve --max-num-queued-tokens 5x

# ---- prompts in every N-th pass: ranks of a mixture only, elsewhere it is said ----
warned='^vtwin: warning: --prefill-schedule-interval has no effect: '
once=(--rates 20 --seeds 1 --once --jobs 1)
few=(--workload few.yaml --prefill-schedule-interval 4)
cat >few.yaml <<'Y'
requests: 20
arrival: {process: constant, rate: 20}
prompt: 600
output: 40
Y
vtwin simulate "${few[@]}"
grep -q "$warned" err || fail "simulate says nothing: $(cat err)"
cp out every
good simulate --workload few.yaml
cmp out every || fail "it has an effect"
vtwin simulate "${few[@]}" --data-parallel-size 2
grep -q "$warned" err || fail "dense ranks: $(cat err)"
good simulate "${few[@]}" --prefill-schedule-interval 1
! grep -q "$warned" err || fail "it is off: $(cat err)"
vtwin capacity "${few[@]}" "${once[@]}"
grep -q "$warned" err || fail "capacity says nothing: $(cat err)"
vtwin tune "${few[@]}" "${once[@]}" --max-num-seqs 16 --max-num-batched-tokens 2048
grep -q "$warned" err || fail "tune says nothing: $(cat err)"
mixture=(--profile qwen3-30b-a3b-h200 --data-parallel-size 2 --workload few.yaml)
vtwin simulate "${mixture[@]}" --prefill-schedule-interval 8
! grep -q "$warned" err || fail "a mixture heeds it: $(cat err)"
cp out every
vtwin simulate "${mixture[@]}"
! cmp -s out every || fail "a mixture's ranks do not heed it"
