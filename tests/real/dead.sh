# An engine that dies: the frontend answers what it still can, and ends by itself.
python_frontend
play --die-after 3
wait_until_up
ask() {
    curl -s -o "answer-$1" -w '%{http_code}' "$url/v1/completions" -H 'Content-Type: application/json' \
        -d '{"model":"tiny","prompt":"Hello","max_tokens":4}' || true
}
for i in 1 2; do
    [ "$(ask $i)" = 200 ] || fail "request $i: $(cat "answer-$i")"
done
code=$(ask 3)
[ "$code" = 500 ] || fail "the request that killed the engine: $code, $(cat answer-3)"
deadline=$((SECONDS + 60))
while any_alive "$frontend" && [ $SECONDS -lt $deadline ]; do sleep 0.5; done
any_alive "$frontend" && fail "the frontend goes on without an engine"
grep -q EngineDeadError frontend.log || fail "the frontend was not told"
any_alive "$play" && fail "play goes on"
echo "ok: $code, then both ended"
