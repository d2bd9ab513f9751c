# A long run on a terminal shows a line that erases itself; elsewhere there is none.
cat >long.yaml <<'END'
requests: 60000
arrival: {process: poisson, rate: 8}
prompt: 512
output: 128
END
# Asked for, it also goes to a pipe, a line at a time; not otherwise.
good simulate --progress --json # it is over before there is anything to say
vtwin fit "$VT_ROOT/tests/trace/data/closed-c2.trace.jsonl.gz" --progress --force -o fitted.json
grep -q '^vtwin: fitting 1 capture; ' err || fail "$(cat err)"
vtwin fit "$VT_ROOT/tests/trace/data/closed-c2.trace.jsonl.gz" --force -o fitted.json
! grep -q 'fitting 1 capture' err || fail "progress though nobody asked: $(cat err)"

# script(1) gives us a terminal, where there are any.
script -qec true /dev/null >/dev/null 2>&1 </dev/null || exit 0
tty() {
    script -qec "$VTWIN simulate --workload long.yaml --json $1 >table" screen >/dev/null </dev/null
    grep -q '"requests": 60000' table || fail "no result: $(cat screen)"
}
tty ''
grep -aEq '[0-9]+ of 60000 requests, [0-9.]+ s simulated' screen || fail "no progress: $(cat -v screen)"
# Whatever comes last, the line is gone.
tr '\r' '\n' <screen | grep -av '^Script' | grep -a . | tail -n 1 | grep -aq "$(printf '^\033\\[K$')" ||
    fail "not erased: $(cat -v screen | tail -c 200)"
tty --quiet
! grep -aq 'simulated' screen || fail "progress although quiet"
good simulate --workload long.yaml --json
