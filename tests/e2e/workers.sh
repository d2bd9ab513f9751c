# Trials by others: workers that are killed, shares of a command and what they merge to, and
# the worker that Ray's tasks start, asked by the wheel's own code.
cat >load.yaml <<'Y'
requests: 60
arrival: {process: poisson, rate: 8}
prompt: 300
output: 50
Y
search=(tune --max-num-seqs "4,8,16,32" --max-num-batched-tokens "512,1024" --workload load.yaml
    --objective capacity --once --quiet --seeds 1 --json)
"$VTWIN" "${search[@]}" --jobs 1 >one.json

# ---- what is not there -------------------------------------------------------
mkdir nothing
cat >nothing/python3 <<'P'
#!/bin/sh
exec /usr/bin/env -i PATH="$REAL_PATH" python3 -I "$@"
P
chmod +x nothing/python3
REAL_PATH=$PATH PATH=$PWD/nothing:$PATH bad "pip install 'vtwin\[ray\]'" "${search[@]}" --workers ray
mkdir tools # and no Python
for tool in cat find grep sort wc; do
    ln -s "$(command -v $tool)" tools/$tool
done
PATH=$PWD/tools bad "pip install 'vtwin\[ray\]'" "${search[@]}" --workers ray
bad "'mpi' is not ray or ray:ADDRESS" "${search[@]}" --workers mpi
bad "'ray:' is not ray or ray:ADDRESS" "${search[@]}" --workers ray:
bad 'give one of them' capacity --workers ray --target http://127.0.0.1:1
OMPI_COMM_WORLD_SIZE=4 bad 'not under mpirun' tune --num-prompts 20
bad 'no command came on stdin' worker
bad 'needs --shards' worker -- tune
bad 'JOB_COMPLETION_INDEX' worker --shards 2 --out shares -- tune
JOB_COMPLETION_INDEX=2 bad 'from 0 to 1' worker --shards 2 --out shares -- tune
JOB_COMPLETION_INDEX=x bad 'not an index' worker --shards 2 --out shares -- tune
bad 'needs --out' worker --shards 2 --index 0 -- tune
bad 'has no trials' worker --shards 2 --index 0 --out shares -- simulate
bad "unknown flag '--nix'" worker --shards 2 --index 0 --out shares -- tune --nix
[ ! -e shares ] || fail "left: $(find shares)"

# ---- a forked worker that is killed -------------------------------------------
"$VTWIN" "${search[@]}" --seed 2 --num-prompts 600 --jobs 1 >whole.json
"$VTWIN" "${search[@]}" --seed 2 --num-prompts 600 --jobs 2 >lost.json 2>err &
pid=$!
killed=
while [ -z "$killed" ] && kill -0 $pid 2>/dev/null; do
    victim=$(pgrep -P $pid | head -n 1) || continue
    [ "$(cut -d ' ' -f 14 "/proc/$victim/stat" 2>/dev/null || echo 0)" -ge 1 ] || continue
    kill -9 "$victim" && killed=$victim
done
wait $pid || fail "exit $?: $(cat err)"
[ -n "$killed" ] || fail "no worker was found to kill"
cmp whole.json lost.json || fail "a killed worker changes the answer"

# ---- shares --------------------------------------------------------------------
share() { # INDEX: as a pod of an Indexed Job runs it
    JOB_COMPLETION_INDEX=$1 "$VTWIN" worker --shards 3 --out shares -- "${search[@]}"
}
share 0 >said
share 2 >>said
[ ! -s said ] || fail "a share prints: $(cat said)"
bad 'share 1 of 3 is missing' merge shares
# One that is killed leaves nothing, or all.
share 1 &
pid=$!
kill -9 $pid
wait $pid 2>/dev/null && fail "killed, and well"
if [ ! -e shares/share-1.vtw ]; then
    bad 'share 1 of 3 is missing' merge shares
    share 1
fi
"$VTWIN" merge shares >merged.json
cmp one.json merged.json || fail "shares have another answer"
cp shares/share-1.vtw shares/share-7.vtw
bad 'are the same share' merge shares
head -c 3000 shares/share-1.vtw >shares/share-7.vtw
mv shares/share-7.vtw shares/share-1.vtw
bad 'share-1.vtw: not a whole file' merge shares
share 1
echo "  # other bytes" >>load.yaml
bad 'has read other files' merge shares
bad 'no share-I.vtw is there' merge .
# Batches after the first are run by merge; plans and validations have one.
capacity=(capacity --workload load.yaml --once --quiet --seeds 2)
"$VTWIN" "${capacity[@]}" >capacity
for i in 0 1; do
    "$VTWIN" worker --shards 2 --index $i --out capacities -- "${capacity[@]}"
done
"$VTWIN" merge capacities | cmp - capacity || fail "shares have another capacity"
validate=(validate --data-dir "$VT_ROOT/tests/cases/validate/truth" --output-dir results --adapters vtwin-step --quiet)
"$VTWIN" "${validate[@]}" >validated
cp results/error_records.csv errors.csv
for i in 0 1 2 3; do
    "$VTWIN" worker --shards 4 --index $i --out validations -- "${validate[@]}"
done
"$VTWIN" merge validations >out # which tells how long simulators took
[ "$(wc -l <out)" -eq "$(wc -l <validated)" ] || fail "shares validate otherwise: $(diff out validated)"
cmp errors.csv results/error_records.csv || fail "shares have other errors"

# ---- the worker behind Ray's tasks ------------------------------------------------
python3 "$VT_ROOT/tests/e2e/worker.py" "$VTWIN" "${capacity[@]}"
