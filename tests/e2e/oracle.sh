# Recorded runs of the real scheduler, through the flag.
cases=("$VT_ROOT"/tests/cases/scheduler/*/*.json.gz)
flags=()
for case in "${cases[@]}"; do flags+=(--oracle "$case"); done
good simulate "${flags[@]}"
[ "$(grep -Ec '^ok [a-z0-9_]+ [0-9]+ steps$' out)" -eq ${#cases[@]} ] || fail "$(cat out)"

# A changed number is found and named: exit 1, one line.
zcat "${cases[0]}" >whole.json
sed 's/"free":9949/"free":9948/' whole.json >changed.json
! cmp -s whole.json changed.json || fail "nothing was changed"
vtwin simulate --oracle changed.json
[ "$status" -eq 1 ] || fail "exit $status, not 1: $(cat err)"
[ "$(wc -l <err)" -eq 1 ] || fail "$(cat err)"
grep -Eq 'changed.json: .*step [0-9]+.*free' err || fail "$(cat err)"

# What is no such record is bad input.
echo '{"format": "other"}' >other.json
bad 'other.json' simulate --oracle other.json
head -c 5000 whole.json >cut.json
bad 'cut.json: line' simulate --oracle cut.json
head -c 500 "${cases[0]}" >cut.json.gz
bad 'cut.json.gz: ' simulate --oracle cut.json.gz
