# The recorder between real frontends and a real engine: it changes nothing, its trace is
# true, and played back through the same frontend gives the same tokens.
capture=$VT_ROOT/tests/cases/wire/wire-capture-$VERSION.jsonl.gz

session() { # NAME: asks; the answers go to NAME.json
    wait_until_up
    check recording ask "$url" "$1.json"
    stop "$frontend" || fail "the frontend did not end"
    mv frontend.log "$1-frontend.log"
}

for kind in rust python; do
    echo "$kind frontend, real engine, recorded:"
    "${kind}_frontend"
    record --trace-out $kind.jsonl --wire-out $kind-wire.jsonl.gz
    engine "$tap"
    session $kind-recorded
    stop "$engine" || fail "the engine did not end"
    ends_well record "$record"
    check recording trace $kind.jsonl $kind-recorded.json
    check recording wire $kind-wire.jsonl.gz "$capture"

    echo "$kind frontend, real engine, alone:"
    "${kind}_frontend"
    engine "$handshake"
    session $kind-alone
    stop "$engine" || fail "the engine did not end"
    check recording same $kind-recorded.json $kind-alone.json

    echo "$kind frontend, played back, recorded again:"
    "${kind}_frontend"
    record --trace-out $kind-replay.jsonl
    to=$tap play --replay-tokens $kind.jsonl --replay-steps $kind.jsonl --replay-match id
    session $kind-replay
    ends_well play "$play"
    ends_well record "$record"
    check recording texts $kind-recorded.json $kind-replay.json
    check recording tokens $kind.jsonl $kind-replay.jsonl
done
