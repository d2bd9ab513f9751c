# vtwin simulate --against: the same requests to several engines, side by side.
json() { # EXPRESSION over d, the output
    python3 -c "import json; d = json.load(open('out')); assert $1, d" || fail "$1"
}
load=(--workload chat --request-rate 12 --num-prompts 100)

# The same as many commands and compare: seeds 1 to 5 of each side.
good simulate "${load[@]}" --max-num-seqs 8 --against '--max-num-seqs 64'
cp out table
grep -qx 'A: as it is and 4 more runs' table || fail "$(cat table)"
grep -qx 'B: --max-num-seqs 64 and 4 more runs' table || fail "$(cat table)"
grep -Eqx 'max_num_seqs +8 +64' table || fail "$(cat table)"
grep -Eq '^ttft_ms.p99 .* better$' table || fail "$(cat table)"
grep -q '^basis  ' table || fail "no word on what it stands on"
for seqs in 8 64; do
    for seed in 1 2 3 4 5; do
        good simulate "${load[@]}" --seed "$seed" --max-num-seqs "$seqs" --out "$seqs/$seed" --quiet
    done
done
good compare 8 64
diff <(grep '_ms\.' table) <(grep '_ms\.' out) || fail "not what compare says"

# An engine against itself is no difference, another model and quotes are fine, several sides too.
good simulate "${load[@]}" --against '--max-num-seqs=64 --no-enable-prefix-caching' \
    --against="--compilation-config '{\"max_cudagraph_capture_size\": 256}' Qwen/Qwen3-8B --gpu H200" \
    --against '' --seeds 2 --json
json "len(d['results']) == 4"
json "all(m['others'][-1]['difference'] == 0 for m in d['metrics'])"

bad "--against '--max-num-sequ 3': unknown flag" simulate --against '--max-num-sequ 3'
bad "--against 'a b': 'b' is no flag" simulate --against 'a b'
bad "a quote is not closed" simulate --against "--max-num-seqs '3"
bad '--seeds needs --against' simulate --seeds 2
bad '--out: of one run, not with --against' simulate --against '--max-num-seqs 3' --out report
[ ! -e report ] || fail "something was left behind"
