# mpirun vtwin tune: the bytes that one process writes, however many ranks there are and
# whatever becomes of them.
if [ ! -e "$(dirname "$VTWIN")/vtwin-mpi.so" ]; then
    export OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0
    bad 'mpirun needs vtwin-mpi.so' tune --num-prompts 20
    exit 0
fi
if ldd "$VTWIN" | grep -q libmpi; then
    fail "vtwin itself loads MPI"
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader,tcp
export OMPI_MCA_btl_vader_single_copy_mechanism=none TMPDIR=/tmp
export ASAN_OPTIONS=detect_leaks=0 # Open MPI's own
search=(tune --max-num-seqs "4,8,16,32" --max-num-batched-tokens "512,1024,2048"
    --objective capacity --once --quiet --out result)

# in_dir DIR COMMAND: there, with its words in DIR/out and DIR/err.
in_dir() {
    local to=$1
    shift
    mkdir "$to"
    (cd "$to" && timeout 100 "$@" >out 2>err) ||
        fail "$to: exit $? ($(tail -n 5 "$to/err"))"
}

# same A B: both hold the same results.
same() {
    # The page repeats the command, and with it how many workers were asked for.
    diff -r -I '^<p class="sub">vtwin tune ' "$1/result" "$2/result" || fail "$1 and $2 have other files"
    cmp "$1/out" "$2/out" || fail "$1 and $2 print other words"
}

in_dir one "$VTWIN" "${search[@]}" --num-prompts 60 --seeds 1 --jobs 1
in_dir workers "$VTWIN" "${search[@]}" --num-prompts 60 --seeds 1 --jobs 4
in_dir ranks mpirun -n 4 "$VTWIN" "${search[@]}" --num-prompts 60 --seeds 1
same one workers
same one ranks

# lose_one: kills rank 2 once it is at work: it has left MPI's threads and used 50 ms since.
lose_one() {
    local pid='' began='' p
    for _ in $(seq 3000); do
        sleep 0.01
        for p in $([ -n "$pid" ] || pgrep -f -- "^$VTWIN .*--seed 2"); do
            if tr '\0' '\n' <"/proc/$p/environ" | grep -qx OMPI_COMM_WORLD_RANK=2; then
                pid=$p
            fi
        done 2>/dev/null
        [ -n "$pid" ] || continue
        grep -q vtwin-mpi "/proc/$pid/maps" || continue
        [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ] || continue
        ticks=$(cut -d ' ' -f 14 "/proc/$pid/stat")
        began=${began:-$ticks}
        [ "$ticks" -lt $((began + 5)) ] || break
    done
    kill -9 "$pid"
}
in_dir whole "$VTWIN" "${search[@]}" --num-prompts 300 --seed 2
lose_one &
in_dir lost mpirun --enable-recovery -n 4 "$VTWIN" "${search[@]}" --num-prompts 300 --seed 2
wait
grep -q 'goes on without rank 2' lost/err || fail "rank 2 was not missed: $(cat lost/err)"
same whole lost

# A capacity goes over ranks too; what is wrong is told once.
in_dir capacity "$VTWIN" capacity --num-prompts 60 --once --jobs 1
in_dir capacities mpirun -n 3 "$VTWIN" capacity --num-prompts 60 --once
cmp capacity/out capacities/out || fail "another capacity"
status=0
mpirun -n 3 "$VTWIN" tune --workload nowhere.yaml >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "exit $status, not 2: $(cat err)"
[ "$(grep -c '^vtwin: ' err)" -eq 1 ] || fail "not told once: $(cat err)"

# Ctrl-C at mpirun: rank 0 alone says how far it came, and nothing is written.
mkdir stopped
cd stopped
cat >long.yaml <<'Y'
requests: 30000
arrival: {process: poisson, rate: 8}
prompt: 300
output: 100
Y
env --default-signal=INT mpirun -n 2 "$VTWIN" "${search[@]}" --workload long.yaml \
    --seed 3 >out 2>err &
pid=$!
for _ in $(seq 600); do
    sleep 0.05
    kill -0 $pid 2>/dev/null || fail "ended by itself: $(cat err)"
    ticks=$(for p in $(pgrep -f -- "^$VTWIN .*--seed 3"); do
        cut -d ' ' -f 14 "/proc/$p/stat" 2>/dev/null || echo 0
    done | sort -n | tail -n 1)
    [ "${ticks:-0}" -lt 50 ] || break
done
kill -INT $pid
wait $pid && fail "success although stopped"
[ "$(grep -c '^vtwin: ' err)" -eq 1 ] || fail "not one line: $(cat err)"
grep -Eq '^vtwin: stopped (before a config|after [0-9]+ of 12 config)' err || fail "$(cat err)"
[ ! -e result ] || fail "left: $(find result)"
