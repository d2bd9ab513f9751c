# A trace or step log whose last line is cut: every command that reads it takes the lines
# before, with one warning, and refuses it with --whole.
data=$VT_ROOT/tests/trace/data
zcat "$data/closed-c2.trace.jsonl.gz" >whole.trace.jsonl
zcat "$data/closed-c2.steps.jsonl.gz" | sed -n 1,200p >whole.steps.jsonl
for name in trace steps; do
    head -c -100 whole.$name.jsonl >cut.$name.jsonl
done
gzip -c whole.trace.jsonl | head -c -900 >cut.trace.jsonl.gz
sed '$d' whole.trace.jsonl >shorter.trace.jsonl

# warned WHAT ARGS...: done, with one line on stderr that is the warning.
warned() {
    local what=$1
    shift
    vtwin "$@"
    [ "$status" -eq 0 ] || fail "exit $status from: $* ($(cat err))"
    [ "$(grep -c '^warning:' err)" -eq 1 ] || fail "not one warning from: $* ($(cat err))"
    grep -q "^warning: $what is cut and left out; [0-9]* before it are read$" err || fail "$*: $(cat err)"
}

trace="cut.trace.jsonl: line $(wc -l <whole.trace.jsonl)" steps='cut.steps.jsonl: line 200'
while read -r what line; do
    eval "args=($line)"
    warned "${!what}" "${args[@]}"
    rm -rf converted.csv fitted.json vtwin-tune
    bad 'the file ends in the middle of this line' "${args[@]}" --whole
done <<'END'
trace simulate --trace cut.trace.jsonl --quiet
trace simulate --latency trace:file=cut.trace.jsonl --trace "$data/requests.csv" --quiet
trace capacity --trace cut.trace.jsonl --rates 1 --once --num-prompts 5 --jobs 2 --quiet
trace tune --workload cut.trace.jsonl --max-num-seqs 8,16 --rates 1 --num-prompts 5 --jobs 2 --quiet
trace fit cut.trace.jsonl --hf-config qwen3-8b --gpu H200 -o fitted.json --no-cv --quiet
steps fit cut.steps.jsonl --hf-config qwen3-8b --gpu H200 -o fitted.json --no-cv --quiet
trace inspect stats cut.trace.jsonl
trace inspect validate cut.trace.jsonl
steps inspect validate cut.steps.jsonl
trace inspect calibrate cut.trace.jsonl --latency trace:file=whole.trace.jsonl --tolerance 1
trace inspect convert cut.trace.jsonl -o converted.csv
trace bench serve --dry-run --model m --dataset-name trace --dataset-path cut.trace.jsonl --num-prompts 5
END
warned "$trace" inspect stats cut.trace.jsonl
cp out cut.stats
good inspect stats shorter.trace.jsonl
sed 's/shorter/cut/' out | cmp - cut.stats

# ---- before anything is served ----
bad 'the file ends in the middle' play --latency-trace cut.trace.jsonl --whole
bad 'the file ends in the middle' play --replay-steps cut.trace.jsonl --whole
bad 'the file ends in the middle' serve --latency trace:file=cut.trace.jsonl --port 0 --whole

# ---- all lines looked at, and a gzip stream without its end ----
warned "$trace" inspect validate --all cut.trace.jsonl
vtwin inspect validate --all --whole cut.trace.jsonl
[ "$status" -eq 2 ] || fail "exit $status with --all --whole"
warned 'cut.trace.jsonl.gz: line [0-9]*' simulate --trace cut.trace.jsonl.gz --quiet
bad 'truncated gzip data' simulate --trace cut.trace.jsonl.gz --quiet --whole
